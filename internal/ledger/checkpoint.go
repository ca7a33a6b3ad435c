package ledger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// foldVersion is that of what folding a chain gives. Raise it with every change
// of State or of a fold: a checkpoint of another version is not used, and the
// chain is folded from its beginning instead. A golden test says when.
const foldVersion = 7

// CheckpointEvery is how many entries lie between two checkpoints: a start folds
// at most so many, and one fold of them takes well under a second.
const CheckpointEvery = 20_000

// keptCheckpoints is how many checkpoints keep their bytes. The last but one is
// for a reader that has just found its entry when the next is written.
const keptCheckpoints = 2

// folded is the bytes of a checkpoint.
type folded struct {
	Fold  int    `json:"fold"`
	State *State `json:"state"`
}

// CheckpointDue reports whether it is time for the next checkpoint.
func (s *State) CheckpointDue() bool { return s.Head.Seq-s.CheckpointAt >= CheckpointEvery }

// CheckpointDraft is a checkpoint of this state. It holds whatever is appended
// before it, because it says of which position it is.
func CheckpointDraft(s *State) (Draft, error) {
	if s.whole || s.Head.Seq == 0 {
		return Draft{}, errors.New("no checkpoint is made of this state")
	}
	raw, err := json.Marshal(folded{Fold: foldVersion, State: s})
	if err != nil {
		return Draft{}, fmt.Errorf("checkpoint at entry %d: %w", s.Head.Seq, err)
	}
	d := Draft{
		Kind: KindCheckpoint, Unique: fmt.Sprintf("checkpoint/%d", s.Head.Seq),
		Body: Checkpoint{At: s.Head, State: BlobDigest(raw)}, Blobs: [][]byte{raw},
	}
	if n := len(s.Checkpoints); n >= keptCheckpoints {
		d.Drop = []string{s.Checkpoints[n-keptCheckpoints]}
	}
	return d, nil
}

func foldCheckpoint(s *State, _ Entry, b Checkpoint) string {
	s.CheckpointAt = b.At.Seq
	s.Checkpoints = append(append([]string(nil), s.Checkpoints[max(0, len(s.Checkpoints)-keptCheckpoints+1):]...), b.State)
	return ""
}

// Past is what Load reads.
type Past interface {
	Read(ctx context.Context, after uint64, limit int) ([]Entry, error)
	Newest(ctx context.Context, kind Kind) (e Entry, ok bool, err error)
	Blob(ctx context.Context, digest string) ([]byte, error)
}

// NewestCheckpoint returns the newest checkpoint, which stands where it says;
// its At is the zero Position where there is none.
func NewestCheckpoint(ctx context.Context, p Past) (Checkpoint, error) {
	e, ok, err := p.Newest(ctx, KindCheckpoint)
	if err != nil || !ok {
		return Checkpoint{}, err
	}
	body, err := Decode(e)
	if err != nil {
		return Checkpoint{}, err
	}
	c, ok := body.(Checkpoint)
	if !ok || e.Hash != hashOf(e) || c.At.Seq >= e.Seq {
		return Checkpoint{}, fmt.Errorf("%w: entry %d is no checkpoint of what is before it", ErrCorrupt, e.Seq)
	}
	return c, Anchor(ctx, p, c.At)
}

// Load gives the state of the newest checkpoint, or that of an empty chain where
// there is none that this version can use. The entries after its Head are still
// to be folded.
func Load(ctx context.Context, p Past) (*State, error) {
	c, err := NewestCheckpoint(ctx, p)
	if err != nil || c.At.Seq == 0 {
		return NewState(), err
	}
	raw, err := p.Blob(ctx, c.State)
	if errors.Is(err, ErrNoBlob) {
		return NewState(), nil
	}
	if err != nil {
		return nil, err
	}
	return restore(raw, c)
}

// Anchor makes sure that a position is in the chain, by the entry itself.
func Anchor(ctx context.Context, p interface {
	Read(ctx context.Context, after uint64, limit int) ([]Entry, error)
}, at Position,
) error {
	if at.Seq == 0 {
		return nil
	}
	es, err := p.Read(ctx, at.Seq-1, 1)
	if err != nil {
		return err
	}
	if len(es) != 1 || es[0].Position() != at || es[0].Hash != hashOf(es[0]) {
		return fmt.Errorf("%w: entry %d is not the one that was known", ErrCorrupt, at.Seq)
	}
	return nil
}

// restore reads the bytes of a checkpoint; those of another version give an
// empty state, which only costs time.
func restore(raw []byte, c Checkpoint) (*State, error) {
	ours, err := ofThisVersion(raw, c)
	if err != nil || !ours {
		return NewState(), err
	}
	f := folded{State: NewState()}
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("%w: checkpoint at entry %d: %w", ErrCorrupt, c.At.Seq, err)
	}
	if f.State == nil {
		return nil, fmt.Errorf("%w: checkpoint at entry %d holds no state", ErrCorrupt, c.At.Seq)
	}
	if f.State.hollow() {
		return nil, fmt.Errorf("%w: the checkpoint at entry %d lacks a part", ErrCorrupt, c.At.Seq)
	}
	if f.State.Head != c.At {
		return nil, fmt.Errorf("%w: the checkpoint at entry %d holds the state at %d", ErrCorrupt, c.At.Seq, f.State.Head.Seq)
	}
	return f.State, nil
}

func ofThisVersion(raw []byte, c Checkpoint) (bool, error) {
	var version struct {
		Fold int `json:"fold"`
	}
	if err := json.Unmarshal(raw, &version); err != nil {
		return false, fmt.Errorf("%w: checkpoint at entry %d: %w", ErrCorrupt, c.At.Seq, err)
	}
	return version.Fold == foldVersion, nil
}

// hollow reports whether a state was read that no fold gives: one without a map.
func (s *State) hollow() bool {
	return s.Services == nil || s.Effects == nil || s.Decisions == nil || s.Tickets == nil || s.Freezes == nil ||
		s.Thawed == nil || s.FrozenAt == nil || s.Pages == nil || s.Cards == nil || s.Deliveries == nil || s.Ceilings == nil
}

// Audit folds the chain from its beginning up to a checkpoint and compares. What
// the checkpoint saved at the start is made up for here, at leisure: a state
// that the chain does not give is ErrCorrupt. A checkpoint that no start uses,
// because its bytes are gone or of another version, is not looked at.
func Audit(ctx context.Context, p Past, c Checkpoint) error {
	stored, err := p.Blob(ctx, c.State)
	if errors.Is(err, ErrNoBlob) {
		return nil
	}
	if err != nil {
		return err
	}
	if ours, err := ofThisVersion(stored, c); err != nil || !ours {
		return err
	}
	s, err := foldTo(ctx, p, c.At.Seq)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(folded{Fold: foldVersion, State: s})
	if err != nil {
		return fmt.Errorf("checkpoint at entry %d: %w", c.At.Seq, err)
	}
	if s.Head != c.At || BlobDigest(raw) != c.State {
		return fmt.Errorf("%w: the checkpoint at entry %d is not what the entries before it give", ErrCorrupt, c.At.Seq)
	}
	return nil
}

// foldTo folds the chain from its beginning up to an entry. A disk that fails on
// the way is no lie of the chain.
func foldTo(ctx context.Context, p Past, seq uint64) (*State, error) {
	s := NewState()
	_, err := Walk(ctx, p, Position{}, func(e Entry) error {
		if err := s.Apply(e); err != nil {
			return err
		}
		if e.Seq == seq {
			return errFar
		}
		return nil
	})
	switch {
	case errors.Is(err, errFar):
		return s, nil
	case err != nil:
		return nil, err
	}
	return nil, fmt.Errorf("%w: it ends at entry %d, before its checkpoint at %d", ErrCorrupt, s.Head.Seq, seq)
}

// errFar ends a walk.
var errFar = errors.New("far enough")
