// Every bound of a connection to NATS, with its reason.

import { CREDIT_BYTES_MAX, FRAME_BYTES_MAX } from '../limits.ts'

/** How long the first connection is tried; a server that starts together with the job is there by then. */
export const CONNECT_DEADLINE_MS = 30_000

/** One attempt at one address: a frozen server accepts connections and says nothing. */
export const DIAL_TIMEOUT_MS = 5_000

/** Between attempts: from here, doubling, with jitter, up to the maximum; for ever. */
export const RETRY_MS_MIN = 50
export const RETRY_MS_MAX = 2_000

/** A server that is away is named in the log this often. */
export const AWAY_LOG_MS = 30_000

/** Between two looks at whether the server answers. */
export const LOOK_MS = 2_000

/** Looks in a row without a sign of the server after which the connection is given up: 10 s. A thread that was busy looks once. */
export const SILENT_LOOKS_MAX = 5

/** An answer to a ping that somebody waits for. */
export const PING_DEADLINE_MS = 5_000

/** Sent and not yet seen by the server; what goes beyond is dropped. As much as all credit of one receiver. */
export const OUTSTANDING_BYTES_MAX = CREDIT_BYTES_MAX

/**
 * What is sent in one turn goes to the socket in writes of about this size. Measured, in processor time of a record, the server's included:
 * a tenth less than with the client's 32 KiB, for the server wakes up less often (bench/distributed/channels.ts).
 */
export const WRITE_BYTES_MAX = 256 * 1024

/** After so many bytes the server is asked whether it has seen them. */
export const PROBE_BYTES = 1024 * 1024

/** The server's max_payload must have room for a frame. */
export const PAYLOAD_BYTES_MIN = FRAME_BYTES_MAX

/** A connection that closes gives the server so long to take what was sent. */
export const CLOSE_MS = 1_000

/** Refused subjects told apart in one life of a connection; a job has no more kinds of them. */
export const REFUSED_SUBJECTS_MAX = 64

/** A packed control message; the largest is the acknowledgement of a slot with much inlined state. */
export const DATAGRAM_BYTES_MAX = 64 * 1024 * 1024

/** A piece of a datagram with its header, if the server takes that much: large ones make heartbeats of others wait. */
export const PIECE_BYTES_MAX = 128 * 1024

/** Pieces of datagrams that the server has not yet seen: far below its max_pending (64 MiB), and enough for a round trip. */
export const PIECES_OUTSTANDING_BYTES_MAX = 4 * 1024 * 1024

/** Datagrams waiting to be sent; one that does not fit is dropped, and the link repeats it. */
export const DATAGRAMS_QUEUED_BYTES_MAX = DATAGRAM_BYTES_MAX

/** Pieces kept for datagrams that are not complete, over all senders: two of the largest. */
export const INCOMPLETE_BYTES_MAX = 2 * DATAGRAM_BYTES_MAX

/** Datagrams that are not complete: pieces of one come together, so more than a few are remains of lost ones. */
export const INCOMPLETE_DATAGRAMS_MAX = 16

/** Senders on one subject that are told apart: a slot hears one coordinator, and for a moment the one before. */
export const SENDERS_MAX = 64
