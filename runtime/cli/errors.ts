// Errors of the `millrace` command: what is wrong on its line.

import { errorsOf } from '../base/errors.ts'
import type { ErrorRow } from '../base/errors.ts'

export const commandErrors = {
  'MR-L10': {
    meaning: 'The command line is not understood.',
    who: 'user',
    retry: false,
    remedy: 'millrace --help has the commands, millrace <command> --help the options of one.',
  },
  'MR-L11': {
    meaning: 'An option has a value that it cannot have.',
    who: 'user',
    retry: false,
    remedy: 'millrace <command> --help has each option with its values and their units.',
  },
  'MR-L12': {
    meaning: 'The job file does not exist.',
    who: 'user',
    retry: false,
    remedy: 'Give the path of a TypeScript or JavaScript file that exports a job, or of a StreamJob manifest.',
  },
  'MR-L13': {
    meaning: 'The folder to work in does not exist.',
    who: 'user',
    retry: false,
    remedy: 'Make it, or give another one to --folder.',
  },
  'MR-L14': {
    meaning: 'The job has finished, but its summary could not be made.',
    who: 'user',
    retry: false,
    remedy: 'See the cause; the results are complete.',
  },
  'MR-L15': {
    meaning: 'This Node is too old.',
    who: 'user',
    retry: false,
    remedy: 'Run it by npx, which takes the pinned Node on Linux x64, or install a newer Node.',
  },
  'MR-L16': {
    meaning: 'The manifest is wrong.',
    who: 'user',
    retry: false,
    remedy: 'Mend what is named; docs/manifests.md has every field.',
  },
  'MR-L17': {
    meaning: 'The manifest asks for what Millrace cannot do yet.',
    who: 'user',
    retry: false,
    remedy: 'Take the field out, or give it the value that is named.',
  },
  'MR-L18': {
    meaning: 'The manifest says that the job is suspended.',
    who: 'user',
    retry: false,
    remedy: 'Set spec.state to running to run it here.',
  },
  'MR-L19': {
    meaning: "The files of the manifest's module cannot be found.",
    who: 'user',
    retry: false,
    remedy: 'Put the ConfigMap into the same YAML file, or name its files by --config-map NAME=PATH.',
  },
  'MR-L20': {
    meaning: 'The job needs more slots than it is given.',
    who: 'user',
    retry: false,
    remedy:
      'Give as many to --slots, or leave it out; or lower the parallelism, or put operators into fewer slot-sharing groups.',
  },
  'MR-L21': {
    meaning: 'The types of the job do not fit.',
    who: 'user',
    retry: false,
    remedy:
      'Mend each: Node runs the file without looking at them, and meets what is wrong at some record. `millrace run --skip-types` leaves the check out.',
  },
  'MR-L22': {
    meaning: "The job's code is in an image, and cannot be loaded on this machine.",
    who: 'user',
    retry: false,
    remedy:
      'Run the job file that the image is built from, or a manifest whose module.path names it; the manifest itself is for a cluster, and millrace validate checks it as far as it goes.',
  },
  'MR-L30': {
    meaning: 'There is no such job here.',
    who: 'user',
    retry: false,
    remedy: 'Name one that is there, or the folder it was started in by --folder; millrace status lists them.',
  },
  'MR-L31': {
    meaning: 'The job does not run.',
    who: 'user',
    retry: false,
    remedy:
      'If it is just starting, ask again in a moment. One that was interrupted, suspended or stopped goes on with its run command; one that has ended can be begun again from its last savepoint by run --from.',
  },
  'MR-L32': {
    meaning: 'The process that runs the job does not answer.',
    who: 'user',
    retry: true,
    remedy: 'It may be busy, stopped, or ending: look at it and ask again. Nothing is done to the job behind its back.',
  },
  'MR-L33': {
    meaning: 'The job did not do what it was asked for.',
    who: 'user',
    retry: true,
    remedy: 'See what it says and ask again; millrace status shows how it is now.',
  },
  'MR-L34': {
    meaning: 'The savepoint could not be copied.',
    who: 'user',
    retry: true,
    remedy: 'Mend the cause and copy its folder yourself, or ask for another savepoint; the one that was taken stays.',
  },
  'MR-L35': {
    meaning: 'The answer did not come in time.',
    who: 'user',
    retry: true,
    remedy:
      'What was asked for stands. Ask again, with a larger --timeout if need be; millrace status shows how the job is now.',
  },
  'MR-L36': {
    meaning: 'A file that tells how to reach the coordinator cannot be used.',
    who: 'user',
    retry: false,
    remedy:
      "Name a file that can be read: the token's, the CA's (PEM), or the process config that the coordinator was started with.",
  },
  'MR-L37': {
    meaning: 'The coordinator cannot be reached, or does not answer.',
    who: 'user',
    retry: true,
    remedy:
      'See whether it runs and is reached from here, that --ca names the CA of its certificate, and --address a host that the certificate is for; ask again: the same --request is the same request. It ends with its job: then HEAD says how (millrace status --config, millrace admin restore-point).',
  },
  'MR-L38': {
    meaning: 'The job has ended, and its coordinator with it.',
    who: 'user',
    retry: false,
    remedy:
      'millrace admin restore-point says where its next start begins (a larger job.start in its config), millrace admin close --deleted ends for good one that is suspended or stopped.',
  },
} as const satisfies Record<string, ErrorRow>

export const commandError = errorsOf(commandErrors)
