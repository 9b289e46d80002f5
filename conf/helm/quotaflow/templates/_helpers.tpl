{{- define "quotaflow.labels" -}}
app.kubernetes.io/name: quotaflow
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "quotaflow.meta" -}}
{{ include "quotaflow.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "quotaflow.claim" -}}
{{ .Values.volume.existingClaim | default (printf "%s-quotaflow" .Release.Name) }}
{{- end }}

{{/* What a pod is, without its containers. */}}
{{- define "quotaflow.pod" -}}
serviceAccountName: {{ .Release.Name }}-quotaflow
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The volume is mounted on one node, and the lock of its folder is of that node's kernel. */}}
{{- define "quotaflow.oneNode" -}}
affinity:
  podAffinity:
    requiredDuringSchedulingIgnoredDuringExecution:
      - topologyKey: kubernetes.io/hostname
        labelSelector:
          matchLabels: {{ include "quotaflow.labels" . | nindent 12 }}
            quotaflow/volume: "true"
{{- end }}

{{- define "quotaflow.container" -}}
image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
env:
  - {name: QUOTAFLOW_LOG_FORMAT, value: {{ .Values.logFormat }}}
  - {name: HOME, value: /tmp}
  - {name: SPARK_LOCAL_DIRS, value: /tmp}
{{- end }}

{{- define "quotaflow.envFrom" -}}
{{- with . }}
envFrom:
  - secretRef: {name: {{ . }}}
{{- end }}
{{- end }}

{{- define "quotaflow.mounts" -}}
- {name: conf, mountPath: /etc/quotaflow/conf, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- if .Values.certificatesSecretName }}
- {name: certificates, mountPath: /etc/quotaflow/certificates, readOnly: true}
{{- end }}
{{- end }}

{{- define "quotaflow.volumes" -}}
- name: conf
  configMap: {name: {{ .Release.Name }}-quotaflow}
- name: tmp
  emptyDir: {}
{{- with .Values.certificatesSecretName }}
- name: certificates
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- define "quotaflow.data" -}}
- name: data
  persistentVolumeClaim: {claimName: {{ include "quotaflow.claim" . }}}
{{- end }}
