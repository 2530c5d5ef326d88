// Faults planted on purpose. Each breaks exactly one rule of the protocol; the simulation must catch each one.

export const plantedFaults = [
  'no-fence', // a coordinator swaps HEAD without checking that the incarnation is still its own (rule 2, 3)
  'alignment-skipped', // a barrier on one channel does not block it until the others have theirs (rule 13)
  'commit-before-swap', // sinks are told to commit when all subtasks acknowledged, before HEAD was swapped (rule 3)
  'frame-not-resent', // a producer does not resend what the consumer did not receive (rule 10)
  'ids-reused', // a new incarnation starts checkpoint ids again from the last completed one (rule 6)
  'finished-producer-counted-early', // a channel counts as having delivered barriers when its producer finished, before its end of data was consumed (rule 19)
  'idle-by-backpressure', // a split is called idle though it had no chance to emit (design: Time)
  'neighbour-key-group', // restore reads one key group of a neighbour's range instead of its own last one
  'async-element-lost', // a snapshot leaves out one record that an asynchronous operator has in flight
  'savepoint-subsumes', // sinks are told to commit when a plain savepoint has completed, as if it were a checkpoint (rule 22)
  'timer-lost-between-two', // a restore takes timers for fired that were due by their block's watermark and had not (rule 27)
  'watermark-restored-too-high', // event time goes on from the largest watermark of the restored blocks, not the smallest (rule 27)
  'stop-barrier-leaks', // a task behind its stop barrier reads once more (rule 25)
  'item-dealt-twice', // at another parallelism an item of operator state goes to two subtasks
  'reconcile-skipped', // a coordinator that takes readers over does not tell the enumerator what they own and have read (rule 20)
  'given-up-adopted', // a slot is taken over that an earlier coordinator had given up, and whose work another has done since (rule 25)
  'final-state-forgotten', // a coordinator that takes a finished subtask over forgets its final state (rules 19, 25)
  'complete-repeated-too-high', // a coordinator that takes subtasks over permits commits up to the newest id that was ever given out (rules 3, 25)
  'rescale-keeps-old-size', // a coordinator that takes over after a rescale in place builds the graph at the old size (rule 25)
  'bound-readers-ignored', // readers that were taken over restart apart, and nobody gives their splits back (rule 20)
  'stale-coordinator-terminates', // a worker forgets whom it has promised itself to, and an older coordinator ends its slots (rule 25)
  'restore-point-listed', // a restore takes the newest of the retained checkpoints that the store lists, or begins from nothing, whatever HEAD names (rules 2, 7)
  'savepoint-swept', // a clean-up takes savepoints of earlier incarnations for leftovers, since HEAD does not retain them (rule 7)
  'savepoint-unwritten', // a savepoint completes without waiting for its manifest to be written (rules 3, 21)
  'begun-before-all-restored', // a subtask reads, and its timers fire, before all others have restored
] as const

export type PlantedFault = (typeof plantedFaults)[number]
