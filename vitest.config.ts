import { defineConfig } from 'vitest/config'

const shared = {
  resolve: { conditions: ['millrace-source'] },
  ssr: { resolve: { conditions: ['millrace-source'] } },
}

export default defineConfig({
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'unit',
          include: [
            'runtime/**/*.test.ts',
            'crds/**/*.test.ts',
            'tests/tidy/**/*.test.ts',
            'bench/**/*.test.ts',
            'tests/golden/**/*.test.ts',
          ],
          testTimeout: 20_000,
        },
      },
      {
        ...shared,
        test: { name: 'whole', include: ['tests/whole/**/*.test.ts'], testTimeout: 240_000, fileParallelism: false },
      },
    ],
  },
})
