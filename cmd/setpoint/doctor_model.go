package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/execute"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/prompts"
)

// providerModel is the provider that asks a model.
const providerModel = "openai"

// modelChecks look at who proposes: the rules, and each endpoint by itself.
func (e *examination) modelChecks() []examine {
	out := []examine{{group: aboutModel, subject: e.site.cfg.Proposer.Rules, limit: localLimit, run: func(context.Context) []checkItem {
		return []checkItem{e.rulesItem()}
	}}}
	if e.site.cfg.Proposer.Provider != providerModel {
		return append(out, examine{group: aboutModel, subject: "endpoints", limit: localLimit, run: func(context.Context) []checkItem {
			return []checkItem{subject{"model/answers", "endpoints"}.skipped("proposer.provider is %s: no model is asked", e.site.cfg.Proposer.Provider)}
		}})
	}
	for _, ep := range e.site.cfg.Proposer.Endpoints {
		// A probe asks for each form and for a long prompt.
		limit := min(max(8*ep.Timeout, localLimit), 4*time.Minute)
		out = append(out, examine{group: aboutModel, subject: ep.Name, limit: limit, run: func(ctx context.Context) []checkItem {
			return e.endpointItems(ctx, ep)
		}})
	}
	return out
}

// rulesItem looks at the rules, which stand in where no model answers.
func (e *examination) rulesItem() checkItem {
	path := e.site.cfg.Proposer.Rules
	s := subject{"model/rules", path}
	if e.site.cfg.Proposer.Provider == providerModel && !e.site.rulesStandIn() {
		return s.warned("there is no such file: where no model answers, nobody proposes and people are told",
			"write "+path+" with what is safe without a model (`rules: []` proposes nothing), or take the warning as your choice")
	}
	r, err := e.site.rules()
	if _, gone := os.Stat(path); errors.Is(gone, fs.ErrNotExist) {
		return s.failed("there is no such file: `run` does not start", "write "+path+" (`rules: []` proposes nothing), or name another as proposer.rules in setpoint.yaml")
	}
	if err != nil {
		return s.failed(faultsText(err), "correct "+path+"; `setpoint validate` shows every fault with file and line")
	}
	if why := e.without(); why != "" {
		return s.skipped("it loads; whether it fits the documents cannot be told: %s", why)
	}
	if err := r.Validate(e.set); err != nil {
		return s.failed(faultsText(err), "correct "+path+"; `setpoint validate` shows every fault with file and line")
	}
	return s.fine("it loads and fits the documents")
}

// endpointItems probe one endpoint.
func (e *examination) endpointItems(ctx context.Context, ep config.Endpoint) []checkItem {
	if ep.APIKeyFile != "" {
		if _, err := readSecret("apiKeyFile of endpoint "+ep.Name, ep.APIKeyFile); err != nil {
			// Why not, and what to do, is that of the file.
			file := secretVerdict("apiKeyFile of endpoint "+ep.Name, ep.APIKeyFile, 0, err)
			return []checkItem{subject{"model/answers", ep.Name}.failed("it is not asked without its key: "+file.Detail, file.Remedy)}
		}
	}
	probed, err := e.probe(ctx, ep)
	if err != nil {
		return []checkItem{subject{"model/answers", ep.Name}.failed(
			execute.CleanText(err.Error(), execute.MaxDetail), "correct endpoint "+ep.Name+" in setpoint.yaml; `setpoint validate` says where")}
	}
	return endpointSeen{ep, e.site.cfg.Proposer, probed}.verdicts()
}

// probe asks one endpoint with a client of its own: a fault of another one, or
// of a prompt folder, has lines of its own.
func (e *examination) probe(ctx context.Context, ep config.Endpoint) (openai.Probed, error) {
	one := e.site
	one.cfg.Proposer.Endpoints = []config.Endpoint{ep}
	if one.checkPrompts() != nil {
		one.cfg.Prompts = ""
	}
	p, err := one.proposer(&fileRules{site: one})
	if err != nil {
		return openai.Probed{}, err
	}
	m, ok := p.(*model)
	if !ok {
		return openai.Probed{}, errors.New("the configured proposer is no model")
	}
	return m.client.Probe(ctx, ep.Name)
}

// endpointSeen is what one endpoint showed, with what is configured for it.
type endpointSeen struct {
	endpoint config.Endpoint
	proposer config.Proposer
	openai.Probed
}

func (s endpointSeen) about(what string) subject {
	return subject{"model/" + what, s.endpoint.Name}
}

// verdicts are the lines about one endpoint.
func (s endpointSeen) verdicts() []checkItem {
	answers := s.answers()
	if answers.Result == resultFail {
		return []checkItem{answers}
	}
	return []checkItem{answers, s.form(), s.whole(), s.proposal(), s.latency(), s.price()}
}

func (s endpointSeen) answers() checkItem {
	at := s.about("answers")
	name := s.endpoint.Name
	if s.Fault == "" {
		served := ""
		if s.ServedModel != "" && s.ServedModel != "unknown" && s.ServedModel != s.endpoint.Model {
			served = ", and calls it " + s.ServedModel
		}
		return at.fine("answers for model %s%s", s.endpoint.Model, served)
	}
	return at.failed(s.Fault, endpointRemedy(name, s.endpoint, s.Status, s.Fault))
}

// endpointRemedy says what to do about an endpoint that gives no answer.
func endpointRemedy(name string, ep config.Endpoint, status int, fault string) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		if ep.APIKeyFile == "" {
			return fmt.Sprintf("it wants a key: name its file as apiKeyFile of endpoint %s in setpoint.yaml", name)
		}
		return fmt.Sprintf("renew the key in %s (apiKeyFile of endpoint %s)", ep.APIKeyFile, name)
	case status == http.StatusNotFound:
		return fmt.Sprintf("correct model of endpoint %s (it is %q), or its baseURL, which ends before /chat/completions; `curl <baseURL>/models` lists what is there", name, ep.Model)
	case status == http.StatusTooManyRequests || strings.HasPrefix(fault, propose.FaultRateLimited):
		return fmt.Sprintf("its quota is used up: raise it with the provider, or lower proposer.limits; another endpoint after %s would stand in", name)
	case status >= 500:
		return fmt.Sprintf("look at the log of the server behind endpoint %s: it answers and fails", name)
	case strings.HasPrefix(fault, propose.FaultTimeout):
		return fmt.Sprintf("raise timeout of endpoint %s, or give its server a smaller model or more power", name)
	case status != 0:
		return fmt.Sprintf("look whether baseURL of endpoint %s leads to an OpenAI-compatible server: %s", name, "it answers, and not as one")
	}
	return fmt.Sprintf("look whether the server of endpoint %s runs and its baseURL in setpoint.yaml is reached from this host", name)
}

// form judges which ways to ask for the form of a proposal are honoured.
func (s endpointSeen) form() checkItem {
	at := s.about("form")
	configured := s.endpoint.Reply
	if configured == "" {
		configured = s.proposer.Reply
	}
	var honoured, others []string
	detail := ""
	for _, m := range s.Modes {
		switch {
		case m.Honoured:
			honoured = append(honoured, string(m.Mode))
		default:
			others = append(others, string(m.Mode))
		}
		if string(m.Mode) == configured && !m.Honoured {
			detail = m.Detail
		}
	}
	return formVerdict(at, forms{
		configured: configured, best: string(s.Best), instead: detail, honoured: honoured, others: others,
		mode: string(s.ProposalMode), fault: s.ProposalFault,
	})
}

// forms are the ways to ask for a proposal: the configured one, the best that is
// honoured ("" for none), what came instead of the configured one, and which are
// honoured or not.
type forms struct {
	configured, best, instead string
	honoured, others          []string
	// mode is how one proposal was asked for, as in an incident ("" when it was
	// not), and fault what was wrong with it, "" when it was valid.
	mode, fault string
}

// passed: the form was not held to, and a proposal was valid all the same.
func (f forms) passed() bool { return f.mode != "" && f.fault == "" }

func formVerdict(at subject, f forms) checkItem {
	switch {
	case f.best == "" && len(f.honoured) == 0:
		return noForm(at, f)
	case f.configured == "auto":
		return at.fine("reply: auto uses %s; honoured: %s", f.best, words(f.honoured))
	}
	for _, h := range f.honoured {
		if h == f.configured {
			return at.fine("honours reply: %s; not honoured: %s", f.configured, orNone(f.others))
		}
	}
	text := fmt.Sprintf("does not honour reply: %s", f.configured)
	if f.instead != "" {
		text += ": " + f.instead
	}
	remedy := fmt.Sprintf("set `reply: %s` on endpoint %s in setpoint.yaml (or `reply: auto`)", f.best, at.name)
	if f.passed() {
		return at.warned(text+"; a proposal asked for so was valid all the same, by the model's own choice", remedy)
	}
	return at.failed(text, remedy)
}

// noForm: nothing holds the model to the form. What it does by itself is another
// matter, and decides whether it can be used at all.
func noForm(at subject, f forms) checkItem {
	text := "none of the ways to ask for a proposal's form is honoured"
	if f.instead != "" {
		text += ": " + f.instead
	}
	if f.passed() {
		return at.warned(fmt.Sprintf("%s; a proposal asked for with reply: %s was valid all the same, by the model's own choice", text, f.mode),
			fmt.Sprintf("take a model or server for endpoint %s that honours one: as it is, some answers will count as malformed; `setpoint plan --propose` shows more of them", at.name))
	}
	return at.failed(text, fmt.Sprintf("answers of endpoint %s count as malformed: take another model or server, or provider: rules", at.name))
}

func orNone(ws []string) string {
	if len(ws) == 0 {
		return "none"
	}
	return words(ws)
}

// whole judges whether a prompt of the configured size reaches the model.
func (s endpointSeen) whole() checkItem {
	return promptVerdict(s.about("prompt"), s.Probed, s.proposer.PromptTokens)
}

func promptVerdict(at subject, p openai.Probed, promptTokens int) checkItem {
	counted := "it counts no tokens"
	if p.CountedTokens > 0 {
		counted = fmt.Sprintf("it counted %d", p.CountedTokens)
	}
	text := fmt.Sprintf("of a prompt of about %d tokens %s", p.EstimatedTokens, counted)
	switch {
	case p.Truncated:
		return at.failed(text+", and its front is cut off, where the rules and the catalogue stand: "+p.PromptDetail,
			fmt.Sprintf("raise the context of the server behind endpoint %s (num_ctx for ollama, --ctx-size for llama.cpp, --max-model-len for vLLM) above promptTokens and 1024 for the reply, or lower proposer.promptTokens (%d)", at.name, promptTokens))
	case p.PromptDetail != "":
		return at.warned("whether a long prompt arrives whole is "+p.PromptDetail,
			fmt.Sprintf("look at the log of the server behind endpoint %s, then `setpoint doctor --only model` again", at.name))
	case p.EstimatedTokens == 0:
		return at.skipped("not tried")
	}
	return at.fine("%s; its front arrives", text)
}

// proposal judges what one question, as an incident would put it, was answered.
func (s endpointSeen) proposal() checkItem {
	return proposalVerdict(s.about("proposal"), string(s.ProposalMode), s.ProposalFault)
}

func proposalVerdict(at subject, mode, fault string) checkItem {
	about := "a question about a service that does not exist"
	if mode != "" {
		about += fmt.Sprintf(", asked with reply: %s,", mode)
	}
	if fault == "" {
		return at.fine("%s gets a valid proposal", about)
	}
	const whole = "; `setpoint plan --propose` asks about a real one"
	text := about + " gets no valid proposal: " + fault
	code, _, _ := strings.Cut(fault, ":")
	switch code {
	case propose.FaultMalformed, propose.FaultTruncated:
		// Only these two get a repair turn.
		return at.warned(text, fmt.Sprintf("a repair turn follows, and when it fails too endpoint %s has proposed nothing: see model/form, or take a model that does better", at.name)+whole)
	case propose.FaultRefusal, propose.FaultFiltered:
		return at.warned(text, fmt.Sprintf("nobody is asked again, and nothing is proposed: take a model, or a filter of the provider, for endpoint %s that answers such questions", at.name)+whole)
	case propose.FaultEmpty:
		return at.warned(text, fmt.Sprintf("the next endpoint is asked, and this one not again: look at the log of the server behind endpoint %s, or take a model that does better", at.name)+whole)
	case propose.FaultTimeout:
		return at.warned(text, fmt.Sprintf("raise timeout of endpoint %s, or give its server a smaller model or more power", at.name)+whole)
	}
	return at.warned(text, fmt.Sprintf("look at the log of the server behind endpoint %s: it answered small questions just before", at.name)+whole)
}

// unanswered: the proposal met a refusal or a failure, which counts nothing and
// took no time that says anything.
func (s endpointSeen) unanswered() bool {
	return s.ProposalFault != "" && s.InputTokens+s.OutputTokens == 0
}

func (s endpointSeen) latency() checkItem {
	if s.unanswered() {
		return s.about("latency").skipped("no proposal was answered")
	}
	return latencyVerdict(s.about("latency"), s.Took, s.endpoint.Timeout)
}

// latencyVerdict judges how long one proposal takes.
func latencyVerdict(at subject, took, timeout time.Duration) checkItem {
	if took == 0 {
		return at.skipped("no proposal was answered")
	}
	text := fmt.Sprintf("one proposal takes %s, timeout is %s", took.Round(time.Millisecond), timeout)
	if took > timeout/2 {
		return at.warned(text+": under load it would not answer in time",
			fmt.Sprintf("raise timeout of endpoint %s, or give its server a smaller model or more power", at.name))
	}
	return at.fine("%s", text)
}

func (s endpointSeen) price() checkItem {
	if s.unanswered() {
		return s.about("price").skipped("no proposal was answered")
	}
	return priceVerdict(s.about("price"), s.InputTokens, s.OutputTokens, s.proposer.Limits)
}

// priceVerdict tells what one proposal costs, and how many the limits allow.
func priceVerdict(at subject, in, out int, l config.ProposerLimits) checkItem {
	if in+out == 0 {
		return at.warned("it does not say how many tokens it used, so tokensPerDay bounds nothing",
			fmt.Sprintf("rely on callsPerHour (%d) under proposer.limits, or turn on usage in the server behind endpoint %s", l.CallsPerHour, at.name))
	}
	text := fmt.Sprintf("one proposal costs %d + %d tokens", in, out)
	var bounds []string
	perDay := 0
	if l.TokensPerDay > 0 {
		perDay = l.TokensPerDay / (in + out)
		bounds = append(bounds, fmt.Sprintf("tokensPerDay %d allows %d a day", l.TokensPerDay, perDay))
	}
	if l.CallsPerHour > 0 {
		bounds = append(bounds, fmt.Sprintf("callsPerHour %d", l.CallsPerHour))
	}
	if len(bounds) > 0 {
		text += ": " + strings.Join(bounds, ", ")
	}
	if l.TokensPerDay > 0 && perDay < l.CallsPerHour {
		return at.warned(text+"; one bad hour uses up the day",
			"raise tokensPerDay or lower callsPerHour under proposer.limits, or lower proposer.promptTokens")
	}
	return at.fine("%s", text)
}

// promptChecks look at the templates.
func (e *examination) promptChecks() []examine {
	return []examine{{group: aboutPrompts, subject: e.site.cfg.Prompts, limit: localLimit, run: func(context.Context) []checkItem {
		return []checkItem{e.promptItem()}
	}}}
}

func (e *examination) promptItem() checkItem {
	name, files := "built-in", fs.FS(prompts.FS)
	if folder := e.site.cfg.Prompts; folder != "" {
		opened, err := openFolder(folder, maxFile)
		if err != nil {
			return subject{"prompts", folder}.failed(err.Error(), "make the folder "+folder+", or take prompts out of setpoint.yaml for the built-in ones")
		}
		name, files = folder, opened
	}
	s := subject{"prompts", name}
	loaded, err := propose.LoadPrompts(files)
	if err != nil {
		return s.failed(execute.CleanText(err.Error(), execute.MaxDetail), "correct the file; `setpoint validate` says which, and taking prompts out of setpoint.yaml gives the built-in ones")
	}
	return s.fine("they load: %s", loaded.Version())
}
