{{/* Who this process is, and which Deployment it is of. */}}
{{- define "millrace.operatorEnvironment" -}}
- name: POD_NAME
  valueFrom:
    fieldRef:
      fieldPath: metadata.name
- name: OPERATOR_NAMESPACE
  valueFrom:
    fieldRef:
      fieldPath: metadata.namespace
- name: OPERATOR_DEPLOYMENT
  value: {{ include "millrace.name" . }}-operator
{{- end }}
