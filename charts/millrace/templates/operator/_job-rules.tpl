{{/* What the operator may do in a namespace with StreamJobs: verbs and kinds one by one. Server-side apply is patch, and create where there
is nothing yet. */}}
{{- define "millrace.jobRules" -}}
- apiGroups: [millrace.dev]
  resources: [streamjobs]
  # Finalizers are patched; ttlAfterFinished deletes.
  verbs: [get, list, watch, patch, delete]
- apiGroups: [millrace.dev]
  resources: [savepoints]
  # Schedules and deletion.savepoint make them; finalizers are patched; retention deletes.
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [millrace.dev]
  # Put as a whole, under the version that was observed.
  resources: [streamjobs/status, savepoints/status]
  verbs: [update]
- apiGroups: [millrace.dev]
  # For owner references that block the deletion of their owner.
  resources: [streamjobs/finalizers, savepoints/finalizers]
  verbs: [update]
- apiGroups: [apps]
  resources: [deployments, statefulsets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [apps]
  # Never changed: a revision is what a start was made with.
  resources: [controllerrevisions]
  verbs: [get, list, watch, create, delete]
- apiGroups: ['']
  resources: [configmaps, services, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: ['']
  # Admin and preflight pods are made, stuck pods deleted.
  resources: [pods]
  verbs: [get, list, watch, create, delete]
- apiGroups: ['']
  # What admin and preflight pods print.
  resources: [pods/log]
  verbs: [get]
- apiGroups: ['']
  # One for each job. Only those with a job's label are listed; RBAC cannot say that.
  resources: [secrets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [networking.k8s.io]
  resources: [networkpolicies, ingresses]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
- apiGroups: ['']
  # Whether it is terminating.
  resources: [namespaces]
  verbs: [get]
{{- end }}
