// Which runtimes an operator drives: its own minor version and the one before (of one major version).

export function isSupported(operator: string, runtime: string): boolean {
  const [own, other] = [operator, runtime].map((version) => /^(\d+)\.(\d+)\./.exec(version))
  // A development build has no such version; it is what is being developed.
  if (own === null || other === null || own === undefined || other === undefined) return operator === runtime
  const behind = Number(own[2]) - Number(other[2])
  return own[1] === other[1] && (behind === 0 || behind === 1)
}
