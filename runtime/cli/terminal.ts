// Where the command writes: results to the standard output, all else to the standard error; on a terminal with one line at its end
// that is written over and over.

export interface TerminalStream {
  write(text: string): unknown
  readonly isTTY?: boolean | undefined
  readonly columns?: number | undefined
}

const CLEAR_LINE = '\r\u001B[2K'
/** Of terminals that do not say how wide they are. */
const columnsUsual = 80

export class Terminal {
  readonly #output: TerminalStream
  readonly #errors: TerminalStream
  #status = ''

  constructor(streams: { readonly output: TerminalStream; readonly errors: TerminalStream }) {
    this.#output = streams.output
    this.#errors = streams.errors
  }

  /** Whether a status line can be shown. */
  get isInteractive(): boolean {
    return this.#errors.isTTY === true
  }

  /** A result. */
  print(text: string): void {
    this.#line(this.#output, text)
  }

  /** About the run. */
  say(text: string): void {
    this.#line(this.#errors, text)
  }

  /** Replaces the line at the end; '' takes it away. */
  setStatus(text: string): void {
    if (!this.isInteractive) return
    // One that wraps could not be cleared.
    this.#status = text.slice(0, (this.#errors.columns ?? columnsUsual) - 1)
    this.#errors.write(`${CLEAR_LINE}${this.#status}`)
  }

  #line(stream: TerminalStream, text: string): void {
    if (this.#status !== '') this.#errors.write(CLEAR_LINE)
    stream.write(`${text}\n`)
    if (this.#status !== '') this.#errors.write(this.#status)
  }
}
