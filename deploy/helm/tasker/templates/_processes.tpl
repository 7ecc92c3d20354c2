{{- define "tasker.labels" -}}
app.kubernetes.io/name: tasker
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "tasker.name" -}}
{{- if contains "tasker" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-tasker" .Release.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end -}}

{{- define "tasker.stopSeconds" -}}
{{- add .Values.worker.longestStepSeconds 7 -}}
{{- end -}}

{{/* What every pod has: it is nobody, writes nothing, and talks to no API of Kubernetes. */}}
{{- define "tasker.pod" -}}
automountServiceAccountToken: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "tasker.container" -}}
image: {{ printf "%s:%s" .Values.image.repository .Values.image.tag | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  - {name: secrets, mountPath: /run/secrets/tasker, readOnly: true}
{{- end -}}

{{- define "tasker.environment" -}}
- {name: DATABASE_URL_FILE, value: /run/secrets/tasker/database_url}
- {name: TASKER_LOG_FORMAT, value: json}
{{- range $name, $value := .Values.environment }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}

{{/* A Deployment of one kind of process. Given: root, kind, args, port, grace, values, replicas and environment, where there are any. */}}
{{- define "tasker.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "tasker.name" .root }}-{{ .kind }}
  labels: {{- include "tasker.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .kind }}
spec:
  {{- if ne .replicas nil }}
  replicas: {{ .replicas }}
  {{- end }}
  selector:
    matchLabels: {{- include "tasker.labels" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .kind }}
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  template:
    metadata:
      labels: {{- include "tasker.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .kind }}
      annotations:
        prometheus.io/scrape: "true"
        prometheus.io/port: {{ .port | quote }}
    spec:
      shareProcessNamespace: true # so that tasker is not process 1, which would not hear SIGTERM while it starts
      terminationGracePeriodSeconds: {{ .grace }}
      {{- include "tasker.pod" .root | nindent 6 }}
      containers:
        - name: {{ .kind }}
          {{- include "tasker.container" .root | nindent 10 }}
          args: {{ toJson .args }}
          env: {{- include "tasker.environment" .root | nindent 12 }}
            - {name: TASKER_JWT_PUBLIC_KEY_PATH, value: /run/secrets/tasker/jwt_public_key}
            {{- range $name, $value := .environment }}
            - {name: {{ $name }}, value: {{ $value | quote }}}
            {{- end }}
          ports:
            - {name: http, containerPort: {{ .port }}}
          startupProbe:
            httpGet: {path: /live, port: http}
            periodSeconds: 2
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /live, port: http}
            timeoutSeconds: 5
            periodSeconds: 10
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /ready, port: http}
            timeoutSeconds: 5
            periodSeconds: 5
          resources: {{- toYaml .values.resources | nindent 12 }}
      volumes:
        - name: tmp
          emptyDir: {sizeLimit: 256Mi}
        - name: secrets
          secret: {secretName: {{ .root.Values.secret }}, defaultMode: 0440}
{{- end -}}
