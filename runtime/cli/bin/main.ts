#!/usr/bin/env node
// The installed command. It says which Node it needs before anything is imported that an older one cannot read.

const nodeMajorMin = 24

if (Number(process.versions.node.split('.')[0]) < nodeMajorMin) {
  const wanted = `MR-L15 This Node is too old. It is ${process.versions.node}; millrace needs ${nodeMajorMin} or later.`
  process.stderr.write(`${wanted} Run it by npx, which takes the pinned Node on Linux x64, or install a newer Node.\n`)
  process.exitCode = 2
} else {
  await import('../main.ts')
}
