// The definitions of the kinds as templates of the chart. `node crds/generate.ts` writes them; a test fails when they are stale.

import { stringify } from 'yaml'
import { customResourceDefinitions } from './custom-resource-definitions.ts'

export interface ChartFile {
  /** From the repository's root. */
  readonly path: string
  readonly text: string
}

export function chartFiles(): ChartFile[] {
  return customResourceDefinitions().map(({ metadata, ...definition }) => {
    // helm uninstall would take all objects of the kind away with it.
    const annotations = { 'helm.sh/resource-policy': 'keep' }
    const { apiVersion, kind, spec } = definition
    const yaml = stringify(
      { apiVersion, kind, metadata: { ...metadata, annotations }, spec },
      { lineWidth: 0, aliasDuplicateObjects: false },
    )
    return {
      path: `charts/millrace/templates/crds/${metadata.name.replace(/\..*/, '')}.yaml`,
      text: ['# Made by crds/generate.ts.', '{{- if .Values.crds.install }}', yaml.trimEnd(), '{{- end }}', ''].join(
        '\n',
      ),
    }
  })
}
