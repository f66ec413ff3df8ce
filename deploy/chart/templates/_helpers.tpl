{{/*
Names that the driver's code has too. tests/deploy compares them.
*/}}
{{- define "quarry.driver" -}}lvm.csi.quarry{{- end }}
{{- define "quarry.audience" -}}lvm.csi.quarry{{- end }}
{{- define "quarry.vgLabelPrefix" -}}vg.lvm.csi.quarry/{{- end }}

{{/* The ports of the pods. */}}
{{- define "quarry.linkPort" -}}9443{{- end }}
{{- define "quarry.controllerHealthPort" -}}9808{{- end }}
{{- define "quarry.nodeHealthPort" -}}9809{{- end }}

{{/* Never changes: selectors cannot. */}}
{{- define "quarry.selector" -}}
app.kubernetes.io/name: quarry
app.kubernetes.io/component: {{ . }}
{{- end }}

{{- define "quarry.labels" -}}
app.kubernetes.io/name: quarry
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "quarry.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}{{ end }}
{{- end -}}
{{- end }}

{{/* What no container gives up for anything: see node.yaml for the one that cannot have it. */}}
{{- define "quarry.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* A probe's way to the health endpoint. */}}
{{- define "quarry.readyCheck" -}}
httpGet:
  path: /healthz
  port: health
{{- end }}

{{- define "quarry.liveCheck" -}}
httpGet:
  path: /livez
  port: health
{{- end }}

{{- define "quarry.config" -}}
# Written by the chart from its values; `quarry config-schema` describes it.
log = {{ .Values.log.level | toJson }}
log-format = {{ .Values.log.format | toJson }}
grace-period = "{{ .Values.node.gracePeriodSeconds | int }}s"
{{- range .Values.volumeGroups }}

[[volume-groups]]
name = {{ .name | toJson }}
reserve = {{ .reserve | default "0" | toString | toJson }}
{{- end }}
{{- end }}
