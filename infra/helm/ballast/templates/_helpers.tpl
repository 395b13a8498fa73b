{{/* Labels by which a part is found: dict "root" $ "part" "api". */}}
{{- define "ballast.selector" -}}
app.kubernetes.io/name: ballast
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .part }}
{{- end }}

{{- define "ballast.match" -}}
{{ include "ballast.selector" . | fromYaml | toJson }}
{{- end }}

{{- define "ballast.labels" -}}
{{ include "ballast.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "ballast.image" -}}
{{ .Values.image.repository }}{{ if .Values.image.digest }}@{{ .Values.image.digest }}{{ else }}:{{ .Values.image.tag }}{{ end }}
{{- end }}

{{/* What every pod has: no token of the cluster's API, no root, no capability, a read-only root. */}}
{{- define "ballast.pod" -}}
serviceAccountName: {{ .Release.Name }}-ballast
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "ballast.container" -}}
image: {{ include "ballast.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  privileged: false
  capabilities: { drop: [ALL] }
{{- end }}

{{/* Where everything is. Values that are secret are named by the file that holds them. */}}
{{- define "ballast.settings" -}}
- { name: BALLAST_HOME, value: /data/home }
- { name: HOME, value: /data }
- { name: BALLAST_DATABASE_URL_FILE, value: /files/database-url }
- { name: BALLAST_MLFLOW_TRACKING_URI_FILE, value: /files/mlflow-url }
- { name: BALLAST_MLFLOW_ARTIFACT_ROOT, value: {{ .Values.artifacts.root | quote }} }
{{- end }}

{{- define "ballast.link" -}}
{{- $names := list }}
{{- range $i := until 3 }}
{{- $names = append $names (printf "tls://%s-nats-%d.%s-nats:4222" $.Release.Name $i $.Release.Name) }}
{{- end }}
- { name: BALLAST_NATS_SERVERS, value: {{ join "," $names | quote }} }
- { name: BALLAST_NATS_SEED_FILE, value: /files/coordinator.nk }
- { name: BALLAST_NATS_CA_FILE, value: /files/ca.pem }
{{- end }}

{{/* The Secret's files that a pod may see: dict "root" $ "keys" (list ...). */}}
{{- define "ballast.files" -}}
- name: files
  secret:
    secretName: {{ .root.Values.files }}
    defaultMode: 0440
    items:
    {{- range .keys }}
      - { key: {{ . }}, path: {{ . }} }
    {{- end }}
{{- end }}

{{- define "ballast.artifactsVolume" -}}
{{- if .Values.artifacts.claim }}
- name: artifacts
  persistentVolumeClaim: { claimName: {{ .Values.artifacts.claim }} }
{{- end }}
{{- end }}

{{- define "ballast.artifactsMount" -}}
{{- if .Values.artifacts.claim }}
- { name: artifacts, mountPath: /artifacts }
{{- end }}
{{- end }}

{{/* Prefect's and MLflow's secrets lie in a folder of the process's own user, as they would have made them themselves. */}}
{{- define "ballast.ownSecrets" -}}
- name: own-secrets
  {{- include "ballast.container" . | nindent 2 }}
  command:
    - /usr/bin/python3
    - -c
    - |
      import os, shutil
      os.umask(0o077)
      os.makedirs("/data/home/secrets", exist_ok=True)
      for name in ("prefect", "mlflow", "mlflow-forms"):
          shutil.copyfile(f"/files/{name}", f"/data/home/secrets/{name}")
  resources: { requests: { cpu: 50m, memory: 64Mi }, limits: { memory: 128Mi } }
  volumeMounts:
    - { name: data, mountPath: /data }
    - { name: files, mountPath: /files, readOnly: true }
{{- end }}
