package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// kind is what the package knows of one Kind: its body's type, what a body
// must satisfy to be foldable, and the fold.
type kind struct {
	decode func(json.RawMessage) (any, error)
	// is reports whether a value is the body of the kind.
	is func(any) bool
	// want names the type of the body, for errors.
	want string
	// check is the part that needs no State; Link and Apply both call it.
	check func(service string, body any) error
	// fold changes the state, or changes nothing and says why.
	fold func(s *State, e Entry, body any) string
}

func bodyOf[T any](check func(string, T) error, fold func(*State, Entry, T) string) kind {
	var zero T
	return kind{
		decode: func(raw json.RawMessage) (any, error) { return decode[T](raw) },
		is:     func(b any) bool { _, ok := b.(T); return ok },
		want:   fmt.Sprintf("%T", zero),
		check:  func(service string, b any) error { return check(service, b.(T)) },
		fold:   func(s *State, e Entry, b any) string { return fold(s, e, b.(T)) },
	}
}

// kinds is the table of all kinds; an entry of any other is ErrUnknownKind.
var kinds = map[Kind]kind{
	KindInit:      bodyOf(checkInit, foldInit),
	KindDocuments: bodyOf(checkDocuments, foldDocuments),
	KindGap:       bodyOf(anyGap, foldGap),
	KindState:     bodyOf(checkState, foldState),
	KindRecovered: bodyOf(checkRecovered, foldRecovered),
	KindAsked:     bodyOf(checkAsked, foldAsked),
	KindProposal:  bodyOf(checkProposed, foldProposed),
	KindDecision:  bodyOf(checkDecided, foldDecided),
	KindTicket:    bodyOf(checkTicket, foldTicket),
	KindAnswer:    bodyOf(checkAnswer, foldAnswer),
	KindTicketEnd: bodyOf(checkTicketEnd, foldTicketEnd),
	KindClaim:     bodyOf(checkClaim, foldClaim),
	KindStarted:   bodyOf(checkStarted, foldStarted),
	KindVoid:      bodyOf(checkVoid, foldVoid),
	KindReceipt:   bodyOf(checkReceipt, foldReceipt),
	KindSettled:   bodyOf(checkSettled, foldSettled),
	KindOutcome:   bodyOf(checkOutcome, foldOutcome),
	KindFreeze:    bodyOf(checkFreeze, foldFreeze),
	KindThaw:      bodyOf(checkThaw, foldThaw),
	KindPage:      bodyOf(checkPage, foldPage),
	KindPageEnd:   bodyOf(checkPageEnd, foldPageEnd),
	KindDelivery:  bodyOf(checkDelivery, foldDelivery),
	KindAck:       bodyOf(checkAck, foldAck),
	KindReset:     bodyOf(checkReset, foldReset),

	KindCheckpoint: bodyOf(checkCheckpoint, foldCheckpoint),
	KindLowered:    bodyOf(checkLowered, foldLowered),
	KindAdopted:    bodyOf(checkAdopted, foldAdopted),
	KindCeiling:    bodyOf(checkCeiling, foldCeiling),
	KindPolicy:     bodyOf(checkPolicy, foldPolicy),
	KindStorm:      bodyOf(checkStorm, foldStorm),
	KindChange:     bodyOf(checkChanged, foldChanged),
	KindCard:       bodyOf(checkCard, foldCard),
}

func encode(d Draft) (json.RawMessage, error) {
	k, ok := kinds[d.Kind]
	if !ok {
		return nil, fmt.Errorf("%w %q", ErrUnknownKind, d.Kind)
	}
	if !k.is(d.Body) {
		return nil, fmt.Errorf("body is %T, want %s", d.Body, k.want)
	}
	if err := k.check(d.Service, d.Body); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	// People read the chain; <, > and & stay as they are.
	enc.SetEscapeHTML(false)
	if err := enc.Encode(d.Body); err != nil {
		return nil, fmt.Errorf("encode body: %w", err)
	}
	raw := bytes.TrimRight(out.Bytes(), "\n")
	// What cannot be read back must not be written: it would stop every later
	// start.
	if _, err := k.decode(raw); err != nil {
		return nil, fmt.Errorf("body does not read back: %w", err)
	}
	return raw, nil
}

// Decode returns the body of an entry: the type in bodies.go that belongs to
// its kind. A kind or a field that this version does not know is
// ErrUnknownKind; anything else that cannot be read is ErrCorrupt.
func Decode(e Entry) (any, error) {
	k, ok := kinds[e.Kind]
	if !ok {
		return nil, fmt.Errorf("entry %d: %w %q: it was written by a newer version; run that one", e.Seq, ErrUnknownKind, e.Kind)
	}
	body, err := k.decode(e.Body)
	if err != nil {
		return nil, fmt.Errorf("entry %d (%s): %w", e.Seq, e.Kind, err)
	}
	err = k.check(e.Service, body)
	switch {
	case errors.Is(err, ErrUnknownKind):
		return nil, fmt.Errorf("entry %d (%s): %w", e.Seq, e.Kind, err)
	case err != nil:
		return nil, fmt.Errorf("%w: entry %d (%s): %w", ErrCorrupt, e.Seq, e.Kind, err)
	}
	return body, nil
}

func decode[T any](raw json.RawMessage) (T, error) {
	var body, loose T
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	err := dec.Decode(&body)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			return body, fmt.Errorf("%w: something follows the body", ErrCorrupt)
		}
		return body, nil
	}
	// Read well but for its fields: a newer version wrote it.
	if json.Unmarshal(raw, &loose) == nil {
		return body, fmt.Errorf("%w: field of a newer version: %w", ErrUnknownKind, err)
	}
	return body, fmt.Errorf("%w: read body: %w", ErrCorrupt, err)
}
