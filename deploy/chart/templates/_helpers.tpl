{{- define "truewire.name" -}}
{{- if contains "truewire" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-truewire" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "truewire.selector" -}}
app.kubernetes.io/name: truewire
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "truewire.labels" -}}
{{ include "truewire.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "truewire.config" -}}
{{- $own := dict "host" "0.0.0.0" "port" 8080 "grace" (printf "%ds" (int .Values.drain.graceSeconds)) }}
{{- with .Values.valkey }}
{{- $_ := set $own "store" . }}
{{- $_ := set $own "sharedLimits" . }}
{{- end }}
{{- toYaml (merge $own .Values.config) }}
{{- end }}
