package main

import (
	"strconv"
	"strings"
)

const rulesText = `# What is proposed, without a model: the first rule that matches wins, and
# where none matches nothing is proposed. Conditions, all optional: service,
# objective, state, reason, tried {action, outcome}, notTried (this episode).
rules: []
#  - {service: checkout, notTried: restart, propose: {action: restart, parameters: {}}}
#  - {service: checkout, tried: {action: restart, outcome: no-change}, propose: escalate}
`

func remediationText(service string) string {
	return strings.ReplaceAll(remediationTemplate, "SERVICE", service)
}

const remediationTemplate = `# What may be done when an SLO of SERVICE is missed. In mode observe nothing is:
# what would have been done is recorded, and ` + "`setpoint history`" + ` shows it.
apiVersion: setpoint.dev/v1alpha1
kind: Remediation
metadata: {name: SERVICE}
spec:
  service: SERVICE
  owner: unknown                 # the team that is asked
  mode: observe                  # observe < suggest < approval < auto
  actionWindow: 10m              # at most one action in each
  holdFor: 5m                    # met this long = recovered
  unknownFor: 10m                # unknown this long = blind, which pages
  approvers: ["@oncall"]         # a group of setpoint.yaml
  # actions:
  #   - name: restart
  #     uses: webhook.post
  #     target: {url: "http://127.0.0.1:9099/SERVICE", statusURL: "http://127.0.0.1:9099/SERVICE"}
  #     class: approval          # auto | approval | escalate: the highest verdict
  #     reversal: transient      # transient | restore | irreversible
  #     settle: 2m               # until its effect can be measured
  #     cooldown: 30m
`

// configText is the setpoint.yaml of init.
func configText(p initPlan, source string) string {
	return strings.NewReplacer(
		"DOCUMENTS", quoted(p.documents), "SOURCE", strconv.Quote(source), "RECEIVERS", receiversSection(p.receivers),
		"APPROVERS", approversSection(p.groups), "EXECUTORS", executorsSection(p),
	).Replace(configTemplate)
}

func quoted(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		out[i] = strconv.Quote(v)
	}
	return strings.Join(out, ", ")
}

func receiversSection(names []string) string {
	if len(names) == 0 {
		return `# receivers:                     # who is paged; named in escalation.receivers of a Remediation
#   - name: oncall
#     alertmanager: {url: "http://127.0.0.1:9093"}
#   - name: backup                 # its turn when the first fails, or nobody acknowledges
#     pagerduty: {routingKeyFile: pagerduty.key}
#     escalateAfter: 10m`
	}
	text := "receivers:                       # who is paged: your documents name them, say how to reach them"
	for _, name := range names {
		text += "\n  - name: " + strconv.Quote(name) + "\n    alertmanager: {url: \"http://127.0.0.1:9093\"}"
	}
	return text
}

func approversSection(groups []string) string {
	text := "approvers:                       # who may approve"
	for _, g := range groups {
		text += "\n  " + strconv.Quote(g) + ": [" + strconv.Quote(actor()) + "]"
	}
	return text
}

func executorsSection(p initPlan) string {
	if len(p.allow)+len(p.programs) == 0 {
		return `# executors:
#   webhook: {allow: ["http://127.0.0.1:9099/"]}   # where an action may be sent, whatever a document says
# secrets: {actuator: actuator.key}                # name: file`
	}
	text := `executors:                       # where an action may be sent, whatever a document says;
                                 # taken from your documents: read it before you raise maxMode`
	if len(p.allow) > 0 {
		text += "\n  webhook:\n    allow: [" + quoted(p.allow) + "]"
	}
	if len(p.programs) > 0 {
		text += "\n  command:\n    allow: [" + quoted(p.programs) + "]\n    envAllow: [PATH]"
	}
	if len(p.secrets) > 0 {
		text += "\n\nsecrets:                         # name: file; the actuator needs the same bytes"
	}
	for _, name := range p.secrets {
		text += "\n  " + strconv.Quote(name) + ": " + strconv.Quote(name+".key")
	}
	return text
}

const configTemplate = `# Setpoint's configuration. Paths are relative to this file; ` + "`setpoint validate`" + `
# checks it, and a key that is not known is an error.
documents: [DOCUMENTS]           # files, folders, globs

sources:                         # Prometheus, or what speaks its HTTP API
  - name: main
    url: SOURCE
    maxSampleAge: 90s            # older than this is unknown

proposer:
  provider: rules                # rules | openai
  rules: rules.yaml
  # endpoints:                   # with openai: these are asked in order, and rules where none answers
  #   - name: main
  #     baseURL: http://127.0.0.1:8000/v1
  #     model: some-model
  #     apiKeyFile: model.key    # a file with the key, where it needs one: chmod 600
  # limits: {callsPerHour: 60, callsPerServicePerHour: 6, tokensPerDay: 500000}

# prompts: prompts/              # the words that a model is sent; built in when absent

# changes: {file: changes.jsonl} # deploys and flags, as lines {"time", "service", "what", "version"}

# policies:                      # the Rego that grants and refuses; built in when absent
#   path: policies/              # ` + "`setpoint policy init policies/`" + ` writes a copy to change
#   shadow: policies-next/       # asked about each decision too, and never binding

ledger:
  sqlite: {path: setpoint.db}
  freezeDir: setpoint.freeze     # a file here stops everything

limits:
  maxMode: observe               # raises no document above it: observe < suggest < approval < auto
  effectsPerHour: 6              # of all services together
  effectsPerServicePerHour: 2
  minSpacing: 2m                 # between two actions on one service

budget: {period: 28d, capacity: 10}   # of all services: what acting alone may cost

RECEIVERS

APPROVERS

# slack:                         # where approvals are asked; without it an approval pages at once
#   team: T0123456789            # deploy/PEOPLE.md makes the app and its tokens
#   channel: C0123456789
#   botTokenFile: bot.token
#   appTokenFile: app.token

EXECUTORS

web:
  listen: 127.0.0.1:8321         # metrics, health, JSON
  socket: setpoint.sock          # for approve, freeze and the like
  # tokensFile: tokens.yaml      # who may write over HTTP: lines of a name, a colon and a token; chmod 600
`
