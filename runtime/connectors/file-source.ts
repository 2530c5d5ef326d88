// The file source: enumerator, reader and a format.

import type { ZodType } from 'zod'
import { typeInfoOf } from '../record/type-info.ts'
import type { Source } from './contract.ts'
import { connectorError } from './errors.ts'
import { FileEnumerator, fileEnumeratorCodec, splitIdOf, type FileEnumeratorState } from './file-enumerator.ts'
import { fileSplitCodec, refuseAddress, type FileFormat, type FileSplit } from './file-format.ts'
import { FileReader, type MalformedPolicy } from './file-reader.ts'

export interface FileSourceOptions<T> {
  /** One file; relative to the folder in which the command runs. */
  readonly path?: string
  /** Several, read in this order. */
  readonly paths?: readonly string[]
  /** Types the stream and validates each record. */
  readonly schema: ZodType<T>
  /** Default 'fail'. */
  readonly malformed?: MalformedPolicy
}

export type FileSource<T> = Source<T, FileSplit, FileEnumeratorState>

/** Throws MR-N06 for options that cannot work. Missing or foreign files are found when the job starts: MR-N01, MR-N05. */
export function fileSource<T>(options: FileSourceOptions<T>, format: FileFormat<T>): FileSource<T> {
  const paths = [...(options.path === undefined ? [] : [options.path]), ...(options.paths ?? [])]
  if (paths.length === 0) throw connectorError('MR-N06', `${format.name} files: give path or paths.`)
  for (const path of paths) refuseAddress(`${format.name} files, path`, path)
  const twice = paths.find((path, index) => paths.indexOf(path) !== index)
  if (twice !== undefined) throw connectorError('MR-N06', `${format.name} files: ${twice} is given twice.`)
  return {
    name: `${format.name} files`,
    bounded: true,
    output: typeInfoOf(`${format.name} record`, options.schema),
    splitCodec: fileSplitCodec,
    enumeratorCodec: fileEnumeratorCodec,
    splitId: splitIdOf,
    createEnumerator: (context, restored) => new FileEnumerator({ context, paths, format, restored }),
    createReader: (context) => new FileReader(context, format, options.malformed ?? 'fail'),
  }
}
