#!/usr/bin/env node
// The installed command. It says which Node it needs before anything is imported that an older one cannot run.

import { commandError } from '../errors.ts'

const nodeMajorMin = 24

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  const { message } = commandError('MR-L15', `It is ${process.versions.node}; ${nodeMajorMin} or later is needed.`)
  process.stderr.write(`${message}\n`)
  process.exitCode = 2
} else {
  await import('../main.ts')
}
