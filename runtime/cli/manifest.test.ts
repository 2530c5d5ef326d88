import { describe, expect, it } from 'vitest'
import { readManifest } from './manifest.ts'

const head = `apiVersion: millrace.dev/v1alpha1
kind: StreamJob
metadata:
  name: flights
spec:
  program:
    module:
      configMap: { name: code, key: job.ts }
`

const configMap = (name: string, namespace = '') => `---
apiVersion: v1
kind: ConfigMap
metadata:
  name: ${name}${namespace === '' ? '' : `\n  namespace: ${namespace}`}
data:
  job.ts: |
    export default 1
  other.ts: ''
binaryData:
  raw: AAEC
`

function refusal(text: string): string {
  try {
    readManifest(text, 'job.yaml')
  } catch (error) {
    return (error as Error).message
  }
  throw new Error('it was taken')
}

describe('a manifest', () => {
  it('names its job by namespace and name', () => {
    expect(readManifest(head, 'job.yaml').name).toBe('default/flights')
    expect(readManifest(head.replace('name: flights', 'name: flights\n  namespace: air'), 'job.yaml').name).toBe(
      'air/flights',
    )
  })

  it('brings the ConfigMaps of its namespace that lie beside it, and lets other objects be', () => {
    const others = '---\napiVersion: v1\nkind: Service\nmetadata: { name: x }\nspec: { foo: 1 }\n---\n# nothing\n'
    const { configMaps } = readManifest(head + configMap('code') + configMap('code', 'elsewhere') + others, 'job.yaml')
    expect([...configMaps.keys()]).toEqual(['code'])
    const files = [...configMaps.get('code')!].map(([name, bytes]) => [name, Buffer.from(bytes).toString('latin1')])
    expect(files).toEqual([
      ['job.ts', 'export default 1\n'],
      ['other.ts', ''],
      ['raw', '\u0000\u0001\u0002'],
    ])
  })

  it('is refused with line and column of each place that is wrong', () => {
    expect(refusal(`${head}  parallelism: 0\n  checkpointing:\n    intervall: 5s\n`)).toBe(
      'MR-L16 The manifest is wrong. job.yaml, line 9, column 3: spec.parallelism is 0; it must be at least 1.\n' +
        'job.yaml, line 11, column 5: spec.checkpointing.intervall: there is no such field. ' +
        'Mend what is named; docs/manifests.md has every field.',
    )
  })

  it('is told "not yet" of fields that are to come, whatever else is wrong', () => {
    expect(
      refusal(`${head}  parallelism: 0\n  checkpointing:\n    unaligned: auto\n  localRecovery: { volume: {} }\n`),
    ).toBe(
      'MR-L17 The manifest asks for what Millrace cannot do yet. ' +
        'job.yaml, line 11, column 5: spec.checkpointing.unaligned, "auto", is not there yet; leave it out; checkpoints are aligned.\n' +
        'job.yaml, line 12, column 3: spec.localRecovery is not there yet; leave it out. ' +
        'Take the field out, or give it the value that is named.',
    )
  })

  it.each([
    ['an empty file', '', 'job.yaml has no StreamJob'],
    ['a text', 'hello', 'job.yaml has no StreamJob'],
    ['a ConfigMap only', configMap('code'), 'job.yaml has no StreamJob'],
    [
      'two StreamJobs',
      `${head}---\n${head}`,
      'job.yaml has 2 StreamJobs; a command is about one. The second begins at line 10, column 1.',
    ],
    ['another version', head.replace('v1alpha1', 'v2'), 'line 1, column 1: there is no StreamJob of millrace.dev/v2'],
    [
      'another kind',
      head.replace('StreamJob', 'StreamJobs'),
      'line 1, column 1: there is no StreamJobs of millrace.dev/v1alpha1',
    ],
    [
      'a Savepoint that is wrong',
      `${head}---\n${head.replace('StreamJob', 'Savepoint')}`,
      'line 15, column 3: spec.program: there is no such field',
    ],
    ['YAML that is open', `${head}  parallelism: [1\n`, 'job.yaml, line 10, column 1: '],
    ['a tab', `${head}\tparallelism: 1\n`, 'job.yaml, line 9, column 1: '],
    [
      'a field twice',
      `${head}  parallelism: 1\n  parallelism: 2\n`,
      'job.yaml, line 10, column 3: Map keys must be unique.',
    ],
    [
      'an alias of nothing',
      `${head}  parallelism: *one\n`,
      'job.yaml, line 9, column 16: there is no anchor one before this.',
    ],
    [
      'a word that Kubernetes takes for a truth value',
      `${head}  allowNonRestoredState: yes\n`,
      'line 9, column 26: yes means one thing here and another to Kubernetes',
    ],
    [
      'a number that Kubernetes takes for octal',
      `${head}  parallelism: 010\n`,
      'line 9, column 16: 010 means one thing here and another to Kubernetes',
    ],
    ['a ConfigMap twice', head + configMap('code') + configMap('code'), 'there are two ConfigMaps code.'],
    ['a key that leads elsewhere', `${head}${configMap('code')}  "../x": AAEC\n`, 'is no name of a file'],
  ])('is refused: %s', (_what, text, answer) => {
    expect(refusal(text)).toMatch(/^MR-L16 /)
    expect(refusal(text)).toContain(answer)
  })

  it('may say yes in quotes, and in the text of a file', () => {
    const args = '    args: { answer: \'yes\', code: "010" }\n'
    const { job } = readManifest(head + args, 'job.yaml')
    expect(job.spec.program.args).toEqual({ answer: 'yes', code: '010' })
    expect(() =>
      readManifest(`${head}${configMap('code').replace('export default 1', 'on')}`, 'job.yaml'),
    ).not.toThrow()
  })
})
