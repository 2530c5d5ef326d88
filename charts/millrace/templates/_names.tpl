{{/* Of everything that the chart makes. */}}
{{- define "millrace.name" -}}
{{- if contains "millrace" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-millrace" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{/* Call with (dict "root" . "component" "operator"). */}}
{{- define "millrace.selector" -}}
app.kubernetes.io/name: millrace
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "millrace.labels" -}}
{{ include "millrace.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end }}

{{- define "millrace.operatorImage" -}}
{{ .Values.operator.image | default (printf "millrace/operator:%s" .Chart.AppVersion) }}
{{- end }}

{{- define "millrace.runtimeImage" -}}
{{ .Values.defaults.image | default (printf "millrace/runtime:%s" .Chart.AppVersion) }}
{{- end }}

{{/* Of the chart's own servers: yes or nothing. */}}
{{- define "millrace.ownNats" -}}
{{- if and .Values.natsServer.enabled (not .Values.defaults.nats.url) }}yes{{ end }}
{{- end }}

{{- define "millrace.ownS3" -}}
{{- if and .Values.s3Server.enabled (not .Values.defaults.storage.checkpoints) }}yes{{ end }}
{{- end }}

{{- define "millrace.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{- define "millrace.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* Pods of a lost node are given up soon. */}}
{{- define "millrace.nodeLost" -}}
- { key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 30 }
- { key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 30 }
{{- end }}
