// What an operator costs, by its own word at /metrics.

export interface OperatorFigures {
  readonly memoryBytes: number
  readonly cpuSeconds: number
  /** Jobs. */
  readonly running: number
  /** Since it began, to the API server; of a watch its end. */
  readonly requests: number
  /** Of them those that change something, leases and events apart. */
  readonly writes: number
}

/** Of the text of /metrics. */
export function operatorFigures(text: string): OperatorFigures {
  const sum = (pattern: RegExp): number =>
    text
      .split('\n')
      .filter((line) => pattern.test(line))
      .reduce((total, line) => total + Number(line.split(' ').at(-1)), 0)
  return {
    memoryBytes: sum(/^process_resident_memory_bytes /),
    cpuSeconds: sum(/^process_cpu_seconds_total /),
    running: sum(/^millrace_job_phase\{.*phase="RUNNING"/),
    requests: sum(/^millrace_operator_api_requests_total\{/),
    writes: sum(
      /^millrace_operator_api_requests_total\{verb="(create|apply|patch|status|delete)",kind="(?!Lease|Event)/,
    ),
  }
}
