// Every failpoint's name, in the order in which a checkpoint meets them.

export const failpointNames = [
  'task.restore',
  'task.process',
  'task.snapshot.sync',
  'task.snapshot.async',
  'task.acknowledge.before',
  'task.acknowledge.after',
  'sink.preCommit.before',
  'sink.preCommit.after',
  'coordinator.manifest.before',
  'coordinator.manifest.after',
  'coordinator.swap.before',
  'coordinator.swap.after',
  'coordinator.complete.before',
  'sink.commit.before',
  'sink.commit.middle',
  'sink.commit.after',
  'coordinator.confirm.before',
  'coordinator.confirm.after',
  'coordinator.discard.before',
  'coordinator.discard.after',
  'coordinator.adopt.before',
  'coordinator.adopt.middle',
  'coordinator.adopt.after',
  'task.finish',
  'task.close',
] as const

export type FailpointName = (typeof failpointNames)[number]
