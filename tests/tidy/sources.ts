// The repository's own text, for tests about its form.

import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))

export interface SourceFile {
  /** From the repository's root, with `/`. */
  readonly path: string
  readonly text: string
}

/** Every file that is, or would be, committed. */
export function repositoryFiles(): string[] {
  const listing = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { cwd: root })
  // A file just removed is still in git's index.
  return [...new Set(listing.toString().trim().split('\n'))].filter((path) => existsSync(join(root, path))).toSorted()
}

export function readSource(path: string): SourceFile {
  return { path, text: readFileSync(join(root, path), 'utf8') }
}

export function typescriptFiles(): SourceFile[] {
  return repositoryFiles()
    .filter((path) => path.endsWith('.ts'))
    .map(readSource)
}

export const isTest = ({ path }: SourceFile): boolean => path.endsWith('.test.ts') || path.includes('/testdata/')

/** The text without comments, on the same lines. Rough: a `//` in a string after a space counts as a comment. */
export function withoutComments(text: string): string {
  return text
    .replaceAll(/\/\*[\s\S]*?\*\//g, (comment) => comment.replaceAll(/[^\n]/g, ' '))
    .replaceAll(/(^|\s)\/\/.*$/gm, '$1')
}

/** Relative imports of a file, as paths from the repository's root. */
export function importsOf(file: SourceFile): string[] {
  const found = withoutComments(file.text).matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']*)'/g)
  return [...found].map(([, specifier]) => normalize(join(dirname(file.path), specifier as string)))
}

/** `path:line` of each match in the text without comments. */
export function placesOf(file: SourceFile, pattern: RegExp): string[] {
  return withoutComments(file.text)
    .split('\n')
    .flatMap((line, index) => (pattern.test(line) ? [`${file.path}:${index + 1}: ${line.trim()}`] : []))
}
