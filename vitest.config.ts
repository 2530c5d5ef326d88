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
          setupFiles: ['tests/support/property-seed.ts'],
          include: [
            'runtime/**/*.test.ts',
            'crds/**/*.test.ts',
            'operator/**/*.test.ts',
            'tests/tidy/**/*.test.ts',
            'bench/**/*.test.ts',
            'tests/golden/**/*.test.ts',
            'e2e/**/*.test.ts',
          ],
          testTimeout: 20_000,
          hookTimeout: 20_000,
          maxWorkers: '100%',
          // What a file changes in its process it puts back: loading the code anew for each file took half of the time.
          isolate: false,
        },
      },
      {
        ...shared,
        test: {
          name: 'whole',
          include: ['tests/whole/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          // Processes of jobs, which mostly wait for each other.
          maxWorkers: 2,
        },
      },
      {
        ...shared,
        // Like the whole ones, without a server too, and more than fits into the minutes of `npm test`.
        test: {
          name: 'faults',
          include: ['tests/faults/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 240_000,
          maxWorkers: 2,
        },
      },
      {
        ...shared,
        test: {
          name: 'servers',
          include: ['tests/servers/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 300_000,
          maxWorkers: 2,
        },
      },
      {
        ...shared,
        // Against a real API server, which is built once from Go modules.
        test: {
          name: 'kubernetes',
          include: ['tests/kubernetes/**/*.test.ts'],
          testTimeout: 240_000,
          hookTimeout: 900_000,
          fileParallelism: false,
        },
      },
    ],
  },
})
