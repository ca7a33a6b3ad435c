package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/lab/demo"
	"github.com/setpoint-dev/setpoint/internal/lab/model"
	"github.com/setpoint-dev/setpoint/internal/propose/rules"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

func fakemodelCommand() *cobra.Command {
	var listen, file string
	cmd := &cobra.Command{
		Use:   "fakemodel",
		Short: "An OpenAI-compatible endpoint whose brain is a rules file, not a language model",
		Long: `Answer POST /v1/chat/completions and GET /v1/models. What it proposes comes from
a rules file and the evidence in the prompt; it is no language model, and its
model name says so. The first line of standard output is its URL.

A question without evidence, as ` + "`setpoint doctor`" + ` puts them, is answered by its
form alone: with a schema (response_format json_schema, or a tool) by the first
object that the schema allows, without one by the first line of the first
message. response_format json_object alone is therefore not honoured there, which
the doctor tells beside the ones that are.`,
		Example: `  setpoint-lab fakemodel --rules evals/rules.yaml --listen 127.0.0.1:8000
  # setpoint.yaml: proposer: {provider: openai, endpoints: [{name: main, baseURL: "http://127.0.0.1:8000/v1", model: ` + model.Name + `}]}`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				root, err := demo.FindRoot(".")
				if err != nil {
					return errors.New("no folder with slo/ and evals/ here or above: run this in a clone of the repository, or name a rules file with --rules")
				}
				file = filepath.Join(root, "evals", "rules.yaml")
			}
			data, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("--rules: %w", err)
			}
			book, err := rules.Load(spec.File{Name: file, Data: data})
			if err != nil {
				return err
			}
			return serve(cmd, listen, model.Handler(book))
		},
	}
	listenFlag(cmd, &listen)
	cmd.Flags().StringVar(&file, "rules", "", "the rules file (default: evals/rules.yaml of the repository)")
	return cmd
}

// effectd is how an actuator is to be.
type effectd struct {
	listen, journal, secretFile, state, mode string
	delay                                    time.Duration
	dedup, control                           bool
}

func effectdCommand() *cobra.Command {
	var e effectd
	var names []string
	for _, m := range executetest.Modes() {
		names = append(names, string(m))
	}
	cmd := &cobra.Command{
		Use:   "effectd",
		Short: "An actuator for webhook.post that journals every request, and can misbehave",
		Long: `Take webhook.post on any path and answer GET ?key= with what became of it. Every
request that tried to act is a line of the journal, synced before it is answered
or applied, so that a second effect under one key shows. A key belongs to the
first digest that it came with; with another one it is refused with 422. What is
still to come of a request is in the journal too, and a start on that journal
does it. The first line of standard output is its URL.

--mode is how requests are treated: ` + strings.Join(names, ", ") + `.
late and late-drop-reply apply after --delay, revert takes the effect back after it.

With --control another process may change that while it runs:

  PUT /control/mode       the body is a mode; ?delay=2s, ?next=3 for three requests
  GET /control/mode       what is in force
  GET /control/journal    the journal`,
		Example: `  setpoint-lab effectd --listen 127.0.0.1:9901 --journal journal.jsonl --secret-file actuator.key
  setpoint-lab effectd --journal journal.jsonl --state '{"replicas": 3}' --mode drop-reply
  setpoint-lab effectd --listen 127.0.0.1:9901 --journal journal.jsonl --control
  curl -X PUT -d late 'http://127.0.0.1:9901/control/mode?delay=30s&next=1'
  # setpoint.yaml: executors: {webhook: {allow: ["http://127.0.0.1:9901/"]}}`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return e.run(cmd) },
	}
	listenFlag(cmd, &e.listen)
	cmd.Flags().StringVar(&e.journal, "journal", "", "append-only file of JSON lines (required)")
	cmd.Flags().StringVar(&e.secretFile, "secret-file", "", "refuse requests that are not signed with this secret")
	cmd.Flags().StringVar(&e.state, "state", "{}", "the target's state at the start, a JSON object")
	cmd.Flags().StringVar(&e.mode, "mode", string(executetest.ModeOK), "how requests are treated")
	cmd.Flags().DurationVar(&e.delay, "delay", 0, "of the modes late, late-drop-reply and revert")
	cmd.Flags().BoolVar(&e.control, "control", false, "let other processes change the mode below /control/")
	cmd.Flags().BoolVar(&e.dedup, "dedup", false, "answer 409 to a key that was seen, and do nothing again")
	return cmd
}

func (e effectd) run(cmd *cobra.Command) (err error) {
	if e.journal == "" {
		return usageError(cmd, "--journal is required: it is what tells one effect from two")
	}
	o := executetest.ActuatorOptions{Journal: e.journal, Dedup: e.dedup, Now: time.Now}
	if err := json.Unmarshal([]byte(e.state), &o.State); err != nil {
		return usageError(cmd, "--state: want a JSON object such as {\"replicas\": 3}, not %q", e.state)
	}
	t := executetest.Treatment{Mode: executetest.Mode(e.mode), Delay: e.delay}
	if err := t.Check(); err != nil {
		return usageError(cmd, "--mode: %v", err)
	}
	if e.secretFile != "" {
		data, err := os.ReadFile(e.secretFile)
		if err != nil {
			return fmt.Errorf("--secret-file: %w", err)
		}
		o.Secret = []byte(config.NewSecret(data).Reveal())
		if len(o.Secret) == 0 {
			return fmt.Errorf("--secret-file: %s is empty", e.secretFile)
		}
	}
	actuator, err := executetest.NewActuator(o)
	if err != nil {
		return fmt.Errorf("--journal: %w", err)
	}
	defer func() { err = errors.Join(err, actuator.Close()) }()
	actuator.Treat(t)
	return serve(cmd, e.listen, controlled(actuator, actuator.Control(), e.control))
}

// controlled puts control in front of a stand-in. Without it, what is below
// /control/ says how to have it, so that a harness does not take another
// answer for one.
func controlled(h, control http.Handler, on bool) http.Handler {
	if !on {
		control = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "nothing is controlled from outside unless it is started with --control", http.StatusNotFound)
		})
	}
	// No mux: it would redirect paths that it wants cleaner.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/control/") {
			control.ServeHTTP(w, r)
			return
		}
		h.ServeHTTP(w, r)
	})
}
