// Every bound of the data plane, with its reason. Bytes of a frame include its header.

/** Measured over NATS (docs/nats.md, Cost): a record costs 0.97, 0.83, 0.89 and 0.91 µs with 8, 16, 32 and 64 KiB, so that nothing rests on the exact size. */
export const FRAME_BYTES_MAX = 32 * 1024

/** What every channel may always have outstanding, or alignment deadlocks (rule 9); also the smallest piece worth cutting. */
export const FRAGMENT_BYTES = 4 * 1024

/** A record above this is refused by name (rule 8): it would hold a consumer's memory and its channel for too long. */
export const RECORD_BYTES_MAX = 8 * 1024 * 1024

/** Outstanding bytes of one receiving connection; NATS cuts a connection off at 64 MiB (rules 8, 9). */
export const CREDIT_BYTES_MAX = 32 * 1024 * 1024

/**
 * One channel's window: frames enough for a round trip of a millisecond, and for credit that comes in halves. Measured (bench/nats.ts): over
 * NATS a record costs 1.7 times a thread's processor time with 256 KiB and 1.45 times with this; more gains little and lengthens alignment.
 */
export const WINDOW_BYTES_MAX = 384 * 1024

/** Records being assembled for one consumer subtask: two of the largest, so that one does not hold up all others. */
export const ASSEMBLY_BYTES_MAX = 2 * RECORD_BYTES_MAX

/** Encoded bytes waiting for credit at which an output says that it is not ready: two frames. */
export const QUEUED_BYTES_MAX = 2 * FRAME_BYTES_MAX

/** Records in one batch however small they are, so that a consumer's turn stays short. */
export const BATCH_RECORDS_MAX = 4096

/** Records waiting in a memory channel at which its output says that it is not ready. */
export const MEMORY_RECORDS_MAX = 1024

/** Records in one batch of a memory channel. */
export const MEMORY_BATCH_RECORDS = 128

/** Between two repeats of a producer (rule 10). */
export const REPEAT_MS = 200

/** Between the first two opening grants, doubling up to REPEAT_MS: as a rule the producer is only a moment late. */
export const OPENING_REPEAT_MS = 10

/** Ended channels a slot still answers for, when a producer has not heard that its end of data arrived. */
export const ENDED_CHANNELS_MAX = 8192
