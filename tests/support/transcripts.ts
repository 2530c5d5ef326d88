// Transcripts: a run of a machine as a play. A line that is not indented is something that happens, the indented lines below it
// are what came of it; empty lines and # are for people. To rewrite what came of it after a wanted change:
// MILLRACE_UPDATE_TRANSCRIPTS=1, then read the diff.

import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const update = process.env['MILLRACE_UPDATE_TRANSCRIPTS'] === '1'

/** One test for each file of the folder, named by it. `startPlay` begins afresh; its function plays one line and says what came of it. */
export function playTranscripts(folder: URL, startPlay: () => (line: string) => readonly string[]): void {
  for (const name of readdirSync(folder).sort()) {
    it(name.replace('.txt', '').replaceAll('-', ' '), () => {
      const file = new URL(name, folder)
      const written = readFileSync(file, 'utf8')
      const play = startPlay()
      const lines: string[] = []
      for (const line of written.trimEnd().split('\n')) {
        if (line.startsWith('  ')) continue
        lines.push(line)
        if (line !== '' && !line.startsWith('#')) lines.push(...play(line).map((said) => `  ${said}`))
      }
      const played = `${lines.join('\n')}\n`
      if (update) writeFileSync(file, played)
      else expect(played).toBe(written)
    })
  }
}
