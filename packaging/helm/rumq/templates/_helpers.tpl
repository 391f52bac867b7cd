{{- define "rumq.name" -}}
{{- if contains "rumq" .Release.Name }}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{ else }}{{ printf "%s-rumq" .Release.Name | trunc 40 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "rumq.selector" -}}
app.kubernetes.io/name: rumq
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rumq.labels" -}}
{{ include "rumq.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "rumq.clustered" -}}
{{- if gt (int .Values.nodes) 1 }}true{{ end }}
{{- end }}

{{- define "rumq.runsEtcd" -}}
{{- if and (include "rumq.clustered" .) (not .Values.etcd.external) }}true{{ end }}
{{- end }}

{{- define "rumq.etcdEndpoints" -}}
{{- if .Values.etcd.external }}{{ toJson .Values.etcd.endpoints }}{{ else }}
{{- $name := include "rumq.name" . }}{{- $found := list }}
{{- range $i := until 3 }}{{ $found = append $found (printf "http://%s-etcd-%d.%s-etcd:2379" $name $i $name) }}{{ end }}
{{- toJson $found }}{{ end }}
{{- end }}

{{- define "rumq.podSecurity" -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .user }}
fsGroup: {{ .user }}
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "rumq.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
