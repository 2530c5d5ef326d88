import { describe, expect, it } from 'vitest'
import { incarnation, jobId, slotId, subtaskIndex, vertexId } from '../base/ids.ts'
import { allowedSubjects, controlSubjects, creditSubject, dataSubject, inboxPrefix } from './subjects.ts'

const subtask = {
  task: { vertex: vertexId('count words'), subtask: subtaskIndex(3) },
  attempt: { incarnation: incarnation(4), number: 2 },
}

/** Whether NATS gives a message on `subject` to a subscriber of `pattern`. */
function matches(pattern: string, subject: string): boolean {
  const [wanted, given] = [pattern.split('.'), subject.split('.')]
  return wanted.every((part, index) => part === '>' || part === given[index]) && given.length >= wanted.length
}

describe('subjects', () => {
  const job = jobId('team/flights.2')
  const control = controlSubjects(job, slotId('worker-1.0#2'), incarnation(7))

  it('name the job, the purpose and whom they are for', () => {
    expect(dataSubject(job, subtask)).toBe('mr.team=2fflights=2e2.data.count=20words.3.4-2')
    expect(creditSubject(job, subtask)).toBe('mr.team=2fflights=2e2.credit.count=20words.3.4-2')
    expect(control).toEqual({
      slot: 'mr.team=2fflights=2e2.control.worker-1=2e0=232.slot',
      coordinator: 'mr.team=2fflights=2e2.control.worker-1=2e0=232.7',
    })
    expect(inboxPrefix(jobId('0f9b'))).toBe('_INBOX_0f9b')
  })

  it('are all allowed by what a job needs, and none by what another job has', () => {
    const all = [control.slot, control.coordinator, dataSubject(job, subtask), creditSubject(job, subtask)]
    for (const subject of [...all, `${inboxPrefix(job)}.abc`]) {
      expect(allowedSubjects(job).filter((pattern) => matches(pattern, subject)).length).toBe(1)
      for (const other of ['team/flights', 'team/flights.20', 'team'])
        expect(allowedSubjects(jobId(other)).some((pattern) => matches(pattern, subject))).toBe(false)
    }
  })
})
