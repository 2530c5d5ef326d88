import { describe, expect, it } from 'vitest'
import { Terminal } from './terminal.ts'

function screen(isTTY: boolean) {
  const written: string[] = []
  const stream = (name: string) => ({ write: (text: string) => written.push(`${name}${text}`), isTTY, columns: 10 })
  return { written, terminal: new Terminal({ output: stream('1:'), errors: stream('2:') }) }
}

describe('a terminal', () => {
  it('keeps the status line below whatever else is written', () => {
    const { written, terminal } = screen(true)
    terminal.setStatus('working')
    terminal.print('result')
    terminal.say('news')
    terminal.setStatus('')
    terminal.say('end')
    expect(written).toEqual([
      '2:\r\u001B[2Kworking',
      '2:\r\u001B[2K',
      '1:result\n',
      '2:working',
      '2:\r\u001B[2K',
      '2:news\n',
      '2:working',
      '2:\r\u001B[2K',
      '2:end\n',
    ])
  })

  it('cuts a status line that would wrap', () => {
    const { written, terminal } = screen(true)
    terminal.setStatus('far too long')
    expect(written).toEqual(['2:\r\u001B[2Kfar too l'])
  })

  it('has no status line where there is no terminal', () => {
    const { written, terminal } = screen(false)
    terminal.setStatus('working')
    terminal.print('result')
    expect(written).toEqual(['1:result\n'])
  })
})
