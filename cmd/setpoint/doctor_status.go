package main

import (
	"fmt"
	"strings"

	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

// statusVerdict judges what an actuator says about a key that was never used.
func statusVerdict(s subject, act spec.Action, o execute.Observation) checkItem {
	asked := "statusURL"
	if act.Executor() == "command" {
		asked = "statusArgv"
	}
	switch {
	case act.Mark() == spec.MarkUnmarked:
		return s.warned(fmt.Sprintf("it has no %s: what is lost on the way can never be told, so it gets approval at most", asked),
			fmt.Sprintf("give target a %s, at %s", asked, act.Pos))
	case !o.Known:
		text := strings.TrimPrefix(o.Detail, "no answer: ")
		return s.failed(text, statusRemedy(act, text))
	case o.KeyKnown:
		return s.failed(fmt.Sprintf("it says known: true, result %s, for a key that was never used", o.Result),
			fmt.Sprintf("let %s look up the key that it is asked for: as it is, an effect that was lost counts as landed", asked))
	}
	if missing := missingState(act, o.State); len(missing) > 0 {
		return s.failed("its state lacks "+and(missing),
			fmt.Sprintf("let %s report it under state, or change the action at %s: it cannot be proposed, bounded or undone without", asked, act.Pos))
	}
	text := "an unused key is unknown to it"
	if len(o.State) > 0 {
		text += ", its state is there"
	}
	return s.fine("%s", text)
}

// noObject is what an answer without a JSON object is said to be.
const noObject = "no JSON object"

// statusRemedy says what to do about a status that was not told. The form of the
// answer is spoken of only where an answer came: elsewhere it would send people
// to change what is right.
func statusRemedy(act spec.Action, text string) string {
	if act.Executor() == "command" {
		return programRemedy(act, text)
	}
	at := fmt.Sprintf("target.statusURL at %s", act.Pos)
	actuator := server{
		name: "the actuator", key: at,
		credentials: "let the actuator answer a GET of statusURL without credentials: it changes nothing and is never signed; or name one that does as " + at,
	}
	switch {
	case text == noObject:
		return "correct " + at + " if another server, or a page to log in, answers there; else " + statusForm("the actuator", act)
	case unformed(text):
		return statusForm("statusURL", act)
	}
	if remedy := actuator.remedy(text); remedy != "" {
		return remedy
	}
	return fmt.Sprintf("look whether the actuator runs, and %s is reached from this host", at)
}

func programRemedy(act spec.Action, text string) string {
	switch {
	case strings.HasPrefix(text, "killed at its deadline"):
		return fmt.Sprintf("let statusArgv end sooner, or raise timeout of the action, at %s: it is %s", act.Pos, spec.FormatDuration(act.Timeout))
	case strings.Contains(text, "holds its output open"):
		return fmt.Sprintf("let statusArgv at %s wait for what it starts, or start nothing: whether its answer is whole cannot be told", act.Pos)
	case strings.HasPrefix(text, "exit "), strings.HasPrefix(text, "killed"):
		return "look why statusArgv fails: it must exit 0 for every key, and " + statusForm("it", act)
	case unformed(text):
		return statusForm("statusArgv", act)
	}
	return fmt.Sprintf("make the program of statusArgv an executable file (`chmod 755`) that executors.command.allow lists, or correct target.statusArgv at %s", act.Pos)
}

// statusForm is the answer that the contract wants.
func statusForm(who string, act spec.Action) string {
	return fmt.Sprintf(`let %s answer {"known": false, "state": {…}} for a key that it does not know (at %s): without it what is in doubt waits for a person, and bounds on the present state are not known`, who, act.Pos)
}

// unformed reports that an answer came, in another form than the contract's.
func unformed(text string) bool {
	for _, w := range []string{noObject, "the JSON object", "known is not", "the result ", "a key occurs twice", "it prints more than", "the answer is longer"} {
		if strings.HasPrefix(text, w) {
			return true
		}
	}
	return false
}

// missingState are the names that an action needs in the observed state, and
// what for.
func missingState(act spec.Action, state propose.Live) []string {
	var out []string
	for _, p := range act.Parameters {
		_, there := state[p.Name]
		switch {
		case there:
		case act.Reversal == spec.Restore:
			out = append(out, fmt.Sprintf("%s (reversal: restore)", p.Name))
		case p.MaximumFactor > 0:
			out = append(out, fmt.Sprintf("%s (maximumFactor)", p.Name))
		}
		if _, there := state[p.FromState]; p.FromState != "" && !there {
			out = append(out, fmt.Sprintf("%s (fromState of %s)", p.FromState, p.Name))
		}
	}
	return out
}
