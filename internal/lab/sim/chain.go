package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// chain is the one ledger. It keeps one State for each entry that somebody
// may still know; none is ever changed.
type chain struct {
	entries []ledger.Entry
	head    *ledger.State
}

// fate is what becomes of an append.
type fate int8

const (
	fateOK fate = iota
	// fateLost: nothing was written, and the store says so.
	fateLost
	// fateUnsure: it was written, and the store could not say so.
	fateUnsure
)

// errStore stands for a store that cannot be written, or does not answer.
var errStore = errors.New("the store failed")

// raced: somebody else was first, which is no fault of the ledger.
func raced(err error) bool {
	return errors.Is(err, ledger.ErrLost) || errors.Is(err, ledger.ErrExists)
}

// planning is what a caller wants appended to the newest state.
type planning func(s *ledger.State) ([]ledger.Draft, error)

// one plans a single entry.
func one(draft func(s *ledger.State) (ledger.Draft, error)) planning {
	return func(s *ledger.State) ([]ledger.Draft, error) {
		d, err := draft(s)
		if err != nil {
			return nil, err
		}
		return []ledger.Draft{d}, nil
	}
}

// append is a store's Append: the plan sees what came after base, and either
// all of its drafts are linked or none.
func (c *chain) append(base *ledger.State, at time.Time, plan planning) ([]ledger.Draft, error) {
	since := c.entries[base.Head.Seq:]
	drafts, err := ledger.PlanFrom(base, plan)(since)
	if err != nil {
		return nil, err
	}
	for _, d := range drafts {
		if d.Unique != "" && slices.ContainsFunc(c.entries, func(e ledger.Entry) bool { return e.Unique == d.Unique }) {
			return nil, fmt.Errorf("%s: %w", d.Unique, ledger.ErrExists)
		}
	}
	for _, d := range drafts {
		if err := c.link(at, d); err != nil {
			return nil, err
		}
	}
	return drafts, nil
}

func (c *chain) link(at time.Time, d ledger.Draft) error {
	e, err := ledger.Link(c.head.Head, at, d)
	if err != nil {
		return err
	}
	next := c.head.Clone()
	if err := next.Apply(e); err != nil {
		return err
	}
	c.head, c.entries = next, append(c.entries, e)
	return nil
}

// clone shares what is there and grows apart.
func (c *chain) clone() chain { return chain{entries: slices.Clip(c.entries), head: c.head} }
