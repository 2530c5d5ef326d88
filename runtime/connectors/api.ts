// What `millrace/connectors` exports.

export type {
  Committer,
  CommitterContext,
  EnumeratorContext,
  PollStatus,
  PreparedTransaction,
  ReaderContext,
  Sink,
  SinkContext,
  SinkWriter,
  Source,
  SourceOutput,
  SourceReader,
  SplitEnumerator,
  WatermarkGenerator,
  WatermarkStrategy,
} from './contract.ts'
export { boundedOutOfOrderness, monotonic, noWatermarks, type ChainableWatermarkStrategy } from './watermarks.ts'
export { parquetFiles, type ParquetFilesOptions } from './parquet.ts'
export { jsonLineFiles } from './json-lines.ts'
export { csvFiles, type CsvFilesOptions } from './csv.ts'
export type { FileSource, FileSourceOptions } from './file-source.ts'
export { MALFORMED_TAG, type MalformedFileRecord, type MalformedPolicy } from './file-reader.ts'
export { dataGenerator, type DataGeneratorOptions } from './datagen.ts'
export { fromCollection, type FromCollectionOptions } from './memory-source.ts'
export {
  checkMagic,
  LEDGER_MAGIC,
  sequence,
  sequenceRecordSchema,
  type SequenceOptions,
  type SequenceRecord,
} from './sequence.ts'
export type { NumberedSource } from './numbered-source.ts'
export { csvFileSink, jsonLineFileSink } from './text-sinks.ts'
export { ledgerSink, plainLedgerSink, type LedgerEntry, type LedgerSystem } from './ledger.ts'
export { MemoryLedger } from './memory-ledger.ts'
export { FileLedger } from './file-ledger.ts'
export {
  httpLedgerSink,
  plainHttpLedgerSink,
  type HttpLedgerOptions,
  type PlainHttpLedgerOptions,
} from './ledger-http.ts'
export type { HttpAnswer, HttpExchange, HttpRequest } from './ledger-http-contract.ts'
export { checkLedger, type LedgerExpectation, type LedgerReport } from './ledger-check.ts'
export { printSink, type PrintSinkOptions } from './print.ts'
export { collected, collectionSink } from './collection.ts'
export { jsonCodec } from './json-codec.ts'
export { connectorErrors } from './errors.ts'
