package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/setpoint-dev/setpoint/internal/config"
	"github.com/setpoint-dev/setpoint/internal/lab/cassette"
	"github.com/setpoint-dev/setpoint/internal/propose"
	"github.com/setpoint-dev/setpoint/internal/propose/openai"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
	"github.com/setpoint-dev/setpoint/prompts"
)

// Model is whom the proposer openai asks: an endpoint, which is recorded where
// Record is set, or the recording of one.
type Model struct {
	BaseURL, Name string
	Key           openai.Key
	Reply         openai.Reply
	// Note goes into the head of a recording.
	Note string
	// Record is a folder to write a cassette to for each scenario and seed, Replay
	// one to read them from. At most one of them is set.
	Record, Replay string
	// Transport is for tests; nil is the client's own.
	Transport http.RoundTripper
}

// Check says what is missing to ask anybody.
func (m Model) Check() error {
	switch {
	case m.Record != "" && m.Replay != "":
		return errors.New("proposer openai: --record and --replay exclude each other: a recording is made of an endpoint")
	case m.Replay != "":
		return nil
	case m.BaseURL == "" || m.Name == "":
		return errors.New("proposer openai: needs an endpoint and a model, --base-url http://127.0.0.1:8000/v1 --model NAME " +
			"(with --key-file where it needs a key, and --record DIR to keep what was said), or a recording, --replay DIR")
	}
	return nil
}

// The kinds of what stands behind a proposer.
const (
	// Scripted is a program that no model had a part in.
	Scripted = "scripted"
	// Asked is a model behind an endpoint.
	Asked = "model"
	// Recorded is what a model once answered.
	Recorded = "recorded"
)

func (o Options) kind() string {
	switch {
	case o.Proposer != OpenAI:
		return Scripted
	case o.Model.Replay != "":
		return Recorded
	}
	return Asked
}

// modelTimeout is that of one call. It is real time: a model is not simulated.
const modelTimeout = time.Minute

// endpointName is the endpoint's in the ledger, whoever answers.
const endpointName = "eval"

// model asks an endpoint, or its recording.
func (w *world) model(o Options) (reconcile.Proposer, error) {
	m := o.Model
	if err := m.Check(); err != nil {
		return nil, err
	}
	if m.Replay != "" {
		return w.replay(o)
	}
	c, err := w.clientOptions(openai.Endpoint{Name: endpointName, BaseURL: m.BaseURL, Model: m.Name, Key: m.Key, Timeout: modelTimeout}, m.Reply)
	if err != nil {
		return nil, err
	}
	c.Transport = m.Transport
	if m.Record != "" {
		if err := w.record(o, &c); err != nil {
			return nil, err
		}
	}
	return w.asks(c)
}

// asks makes the asker, whose counts go into the score.
func (w *world) asks(c openai.Options) (reconcile.Proposer, error) {
	a, err := newAsker(c)
	if err != nil {
		return nil, err
	}
	w.asked = a.tally
	return a, nil
}

// record puts a recorder before the endpoint. What it writes gets the name of a
// cassette when the run is over and something was answered: half a recording, or
// one of an endpoint that was not there, takes the place of none.
func (w *world) record(o Options, c *openai.Options) error {
	if err := os.MkdirAll(o.Model.Record, 0o755); err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	path := filepath.Join(o.Model.Record, cassette.FileName(w.s.Name, o.Seed))
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	w.closers = append(w.closers, func() error {
		err := f.Close()
		if gone := os.Remove(part); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return err
	})
	base := c.Transport
	if base == nil {
		base = &http.Transport{DisableKeepAlives: true, DisableCompression: true, ForceAttemptHTTP2: true}
	}
	rec, err := cassette.Record(f, cassette.Head{
		Of: fmt.Sprintf("scenario %s, seed %d", w.s.Name, o.Seed), Model: o.Model.Name, Reply: string(c.Reply),
		Prompts: promptsOf(c.Prompts), Note: o.Model.Note,
	}, base, string(o.Model.Key))
	if err != nil {
		return err
	}
	c.Transport, w.whole = rec, func() error {
		if err := rec.Err(); err != nil || w.asked.sum().unanswered() != "" {
			return err
		}
		return os.Rename(part, path)
	}
	return nil
}

// replay answers from the cassette of the scenario and seed.
func (w *world) replay(o Options) (reconcile.Proposer, error) {
	path := filepath.Join(o.Model.Replay, cassette.FileName(w.s.Name, o.Seed))
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("--replay: %w; eval run --record writes one for each scenario and seed", err)
	}
	defer func() { _ = f.Close() }()
	p, err := cassette.Play(f)
	if err != nil {
		return nil, fmt.Errorf("--replay %s: %w", path, err)
	}
	h := p.Head()
	c, err := w.clientOptions(openai.Endpoint{Name: endpointName, BaseURL: "http://replay.invalid/v1", Model: h.Model}, openai.Reply(h.Reply))
	if err != nil {
		return nil, err
	}
	c.Transport = p
	now := promptsOf(c.Prompts)
	w.whole = func() error {
		err := p.Err()
		if err != nil && now != h.Prompts {
			err = fmt.Errorf("%w\nit was recorded with the prompts %s, and these are %s: record it again", err, h.Prompts, now)
		}
		if err != nil {
			err = fmt.Errorf("--replay %s: %w", path, err)
		}
		return err
	}
	return w.asks(c)
}

func promptsOf(p *propose.Prompts) string { return p.Version() + " " + p.Digest() }

// clientOptions are those of the agent's own client, over simulated time.
func (w *world) clientOptions(e openai.Endpoint, reply openai.Reply) (openai.Options, error) {
	templates, err := propose.LoadPrompts(prompts.FS)
	if err != nil {
		return openai.Options{}, err
	}
	if reply == "" {
		reply = openai.ReplySchema
	}
	return openai.Options{
		Endpoints: []openai.Endpoint{e}, Reply: reply, Prompts: templates, PromptTokens: config.Default().Proposer.PromptTokens, Now: w.now.time,
		Random: func() float64 { return 0.5 }, // no chance that a replay would not have
	}, nil
}

// asker is the client of a model as the loop asks it.
type asker struct {
	client *openai.Client
	who    propose.Proposer
	tally  *tally
}

func newAsker(o openai.Options) (asker, error) {
	c, err := openai.New(o)
	if err != nil {
		return asker{}, err
	}
	return asker{c, propose.Proposer{Kind: openai.Kind, Endpoint: o.Endpoints[0].Name, Model: o.Endpoints[0].Model}, &tally{}}, nil
}

// Identity is recorded before the call.
func (a asker) Identity() propose.Proposer { return a.who }

// Propose asks.
func (a asker) Propose(ctx context.Context, r propose.Request) reconcile.Proposed {
	p, u := a.client.Propose(ctx, r)
	a.tally.add(p, u.Exchanges)
	return reconcile.Proposed{Proposal: p, Exchanges: u.Exchanges}
}
