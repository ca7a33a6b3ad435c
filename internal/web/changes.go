package web

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/measure"
	"github.com/setpoint-dev/setpoint/internal/spec"
)

const (
	// MaxChangesAMinute is how many changes may be posted in a minute, which is
	// also the longest list: each is an entry of the ledger for ever.
	MaxChangesAMinute = 60
	// oldestChange is how old a change may be when it is posted.
	oldestChange = 30 * 24 * time.Hour
)

// ChangeRequest is one change as it is posted. No time is now, by this host's
// clock; whoever may post twice gives one. Times are cut to whole seconds.
type ChangeRequest struct {
	Time    time.Time `json:"time,omitzero"`
	Service string    `json:"service"`
	What    string    `json:"what"`
	Version string    `json:"version,omitempty"`
}

// Change is one entry of the change feed.
type Change struct {
	Time    time.Time `json:"time"`
	Service string    `json:"service"`
	What    string    `json:"what"`
	Version string    `json:"version"`
	// From is posted, file or target; input where a decision tells of it.
	From string `json:"from"`
}

// Changes are what was posted and what the file of this host has, newest first.
// What targets list of their revisions is asked when something is proposed, so
// only an explanation has it.
func Changes(v View, f Filter) List[Change] {
	seen := map[measure.Change]bool{}
	var all []measure.Change
	from := map[measure.Change]string{}
	add := func(c measure.Change, where string) {
		c.At = c.At.UTC()
		if !f.service(c.Service) || !f.since(c.At) || seen[c] {
			return
		}
		seen[c], from[c] = true, where
		all = append(all, c)
	}
	for _, sv := range v.State.Services {
		for _, c := range sv.Changes {
			add(c, "posted")
		}
	}
	for _, c := range v.Changes {
		add(c, "file")
	}
	for _, c := range v.Revised {
		add(c, "target")
	}
	slices.SortFunc(all, measure.Change.Newest)
	items := make([]Change, len(all))
	for i, c := range all {
		items[i] = Change{Time: c.At, Service: c.Service, What: c.What, Version: c.Version, From: from[c]}
	}
	return listOf("ChangeList", items)
}

// Changed says what became of posted changes.
type Changed struct {
	Meta
	Recorded   int `json:"recorded"`
	Duplicates int `json:"duplicates"`
	// Duplicate: all of them were known already.
	Duplicate bool `json:"duplicate"`
}

// ChangedAnswer is the answer to n changes of which some were not known.
func ChangedAnswer(n, fresh int) Changed {
	return Changed{Meta: Meta{APIVersion: apiVersion, Kind: "Changed"}, Recorded: fresh, Duplicates: n - fresh, Duplicate: fresh == 0}
}

// change takes one change or a list of them. It is context: nothing is woken, and
// nothing is allowed because of it.
func (s *Server) change(r *http.Request) (any, error) {
	posted, err := decodeChanges(r)
	if err != nil {
		return nil, err
	}
	now := s.o.Now().UTC()
	changes, err := CheckChanges(s.set(), posted, now)
	if err != nil {
		return nil, err
	}
	if !s.changes.AllowN(now, len(changes)) {
		return nil, &Error{
			Status: http.StatusTooManyRequests, Code: "too-many",
			Message: fmt.Sprintf("more than %d changes in a minute; post them later", MaxChangesAMinute),
		}
	}
	by, _ := actorOf(r)
	fresh, err := s.o.Desk.Change(r.Context(), changes, by)
	if err != nil {
		return nil, err
	}
	return ChangedAnswer(len(changes), fresh), nil
}

// decodeChanges reads an object or a list.
func decodeChanges(r *http.Request) ([]ChangeRequest, error) {
	body := bufio.NewReader(r.Body)
	begin, _ := body.Peek(body.Size()) // What is wrong with it, decode says.
	r.Body = io.NopCloser(body)
	if bytes.HasPrefix(bytes.TrimLeft(begin, " \t\r\n"), []byte("[")) {
		var list []ChangeRequest
		err := decode(r, &list)
		return list, err
	}
	var one ChangeRequest
	if err := decode(r, &one); err != nil {
		return nil, err
	}
	return []ChangeRequest{one}, nil
}

// CheckChanges refuses what is of no loaded service, of no credible time, or not
// fit to be shown; all or nothing.
func CheckChanges(set spec.Set, posted []ChangeRequest, now time.Time) ([]measure.Change, error) {
	if len(posted) == 0 || len(posted) > MaxChangesAMinute {
		return nil, bad("want 1 to %d changes, not %d", MaxChangesAMinute, len(posted))
	}
	var out []measure.Change
	for _, p := range posted {
		c := measure.Change{At: measure.ChangeTime(p.Time), Service: p.Service, What: p.What, Version: p.Version}
		if p.Time.IsZero() {
			c.At = measure.ChangeTime(now)
		}
		if err := c.Check(); err != nil {
			return nil, bad("a change of %q: %s", p.Service, err)
		}
		if _, ok := set.Service(c.Service); !ok {
			return nil, notFound("no service %q in the documents; GET /api/v1/services lists them", c.Service)
		}
		switch ahead := c.At.Sub(now); {
		case ahead > measure.ChangeAhead:
			return nil, bad("time: %s is more than %s in the future; post a change when it has happened", c.At.Format(time.RFC3339), measure.ChangeAhead)
		case ahead < -oldestChange:
			return nil, bad("time: %s is more than 30 days ago", c.At.Format(time.RFC3339))
		}
		out = append(out, c)
	}
	return out, nil
}
