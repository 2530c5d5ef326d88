// Servers that are written in Go, built once for all test runs from their published source by `go install`.

import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { withWorkFolder } from '../../../e2e/cluster/work-folder.ts'

/** For the hooks that wait for a build: versitygw and NATS take a minute or two on two processors, SeaweedFS many more. */
export const buildDeadlineMs = 1_500_000

/** Of what Go says while it fetches and builds. */
const outputBytesMax = 16_000_000

export interface GoTool {
  /** Of the binary. */
  readonly name: string
  /** The package that `go install` takes. */
  readonly package: string
  readonly version: string
  /**
   * Of a package whose module's go.mod replaces another module, which `go install` refuses: the module. It is built in its own folder of Go's
   * module cache, with the go.mod and go.sum that it was published with.
   */
  readonly module?: string
}

/** Where binaries for tests are kept between runs. */
export function cacheFolder(): string {
  return process.env['MILLRACE_CACHE'] ?? join(homedir(), '.cache', 'millrace')
}

/** Path of the binary, once it is built. */
export function toolPath({ name, version }: GoTool): string {
  return join(cacheFolder(), `${name}-${version}`, name)
}

/** Path of the binary; built when it is not in the cache. Rejects with what is missing. */
export async function goTool(tool: GoTool): Promise<string> {
  const binary = toolPath(tool)
  if (existsSync(binary)) return binary
  try {
    // Beside its place and then renamed: two test runs may build at the same time.
    await withWorkFolder(dirname(binary), async (work) => {
      await build(tool, work)
      await rename(join(work, tool.name), binary)
    })
    return binary
  } catch (error) {
    throw new Error(
      `These tests need ${tool.name} ${tool.version}. It is neither at ${binary} nor could it be built from ` +
        `${tool.package}@${tool.version} (is Go installed?): ${String(error)}`,
      { cause: error },
    )
  }
}

async function build({ name, package: source, version, module }: GoTool, work: string): Promise<void> {
  const go = (words: readonly string[], folder: string): Promise<{ readonly stdout: string }> =>
    promisify(execFile)('go', words, {
      cwd: folder,
      env: { ...process.env, GOBIN: work },
      timeout: buildDeadlineMs,
      maxBuffer: outputBytesMax,
    })
  if (module === undefined) {
    await go(['install', `${source}@${version}`], work)
    return
  }
  const { stdout } = await go(['mod', 'download', '-json', `${module}@${version}`], work)
  const { Dir: folder } = JSON.parse(stdout) as { readonly Dir: string }
  const output = join(work, name)
  await go(['build', '-mod=readonly', '-trimpath', '-ldflags=-s -w', '-o', output, source], folder)
}
