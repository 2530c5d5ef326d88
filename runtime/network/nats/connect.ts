// The data connection or the control connection of one thread.

import type { Environment } from '../../base/environment.ts'
import type { MillraceError } from '../../base/errors.ts'
import type { JobId } from '../../base/ids.ts'
import type { NatsConfig, NatsLink } from '../../distributed/contract.ts'
import { allowedSubjects, inboxPrefix, trialSubject } from '../subjects.ts'
import { checkNatsConfig } from './authentication.ts'
import type { ReadSecret } from './authentication.ts'
import { Connection } from './connection.ts'
import { DatagramPort } from './datagrams.ts'
import { NatsFrames } from './frames.ts'
import { CONNECT_DEADLINE_MS, LOOK_MS } from './limits.ts'

export interface ConnectNatsOptions {
  readonly job: JobId
  /** As which the server shows this connection. */
  readonly name: string
  readonly environment: Environment
  readonly log: Environment['log']
  /** The content of a file; asked for each attempt, so that rotated credentials are found. */
  readonly readSecret: ReadSecret
  /**
   * What a person must mend: a subject that is not allowed (MR-W34), what the server says without being asked (MR-W35), and once in each
   * outage why it refuses this connection (MR-W31, W32, W33, W34, W38). The link goes on trying. Default: the log.
   */
  readonly onError?: (error: MillraceError) => void
  /** Of the first connection, ms. */
  readonly connectDeadlineMs?: number
  /** Between two looks at whether the server answers, ms; after five without a sign the connection is given up. */
  readonly lookMs?: number
}

/**
 * Connects and stays connected. Throws MR-W37 for a configuration that contradicts itself; rejects with MR-W30 when no server answered until
 * the deadline, and at once with MR-W31 (credentials refused), W32 (TLS), W33 (max_payload too small), W34 (the job's subjects are not
 * allowed), W38 (a file).
 */
export async function connectNats(config: NatsConfig, options: ConnectNatsOptions): Promise<NatsLink> {
  checkNatsConfig(config)
  const { job, name, environment, log, readSecret } = options
  const report = (error: MillraceError): void => log('error', error.message, { connection: name })
  const connection = await Connection.open({
    config,
    name,
    inboxPrefix: config.inboxPrefix ?? inboxPrefix(job),
    allowed: allowedSubjects(job),
    trial: trialSubject(job),
    environment,
    log,
    readSecret,
    onError: options.onError ?? report,
    connectDeadlineMs: options.connectDeadlineMs ?? CONNECT_DEADLINE_MS,
    lookMs: options.lookMs ?? LOOK_MS,
  })
  return {
    transport: new NatsFrames(connection),
    get maxPayload() {
      return connection.maxPayload
    },
    datagrams: (subjects) => new DatagramPort(connection, subjects, environment, log),
    get connected() {
      return connection.connected
    },
    ping: () => connection.ping(),
    flush: () => connection.flush(),
    close: () => connection.close(),
  }
}
