package executetest

import (
	"bytes"
	"crypto/hmac"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Record is one line of the journal: a request that tried to act, or, where Of
// is set, what an earlier request leads to later. A request is written before
// it is answered, a change before it is made.
type Record struct {
	// Time is the actuator's clock when the record was made.
	Time       time.Time      `json:"time,omitzero"`
	Key        string         `json:"key"`
	Digest     string         `json:"digest"`
	Service    string         `json:"service"`
	Action     string         `json:"action"`
	Parameters map[string]any `json:"parameters"`
	Path       string         `json:"path"`
	// Remote is the sender's address; equal ones shared a connection.
	Remote string      `json:"remote"`
	Header http.Header `json:"header"`
	// Body is the bytes as they came; empty where Of is set.
	Body string `json:"body"`
	// Signed: the request was signed as it must be, or needs no signature.
	Signed bool `json:"signed"`
	// DryRun: the sender asked for nothing to be done.
	DryRun bool `json:"dryRun"`
	// Duplicate: the key was taken before and nothing was done again.
	Duplicate bool `json:"duplicate"`
	// Result is what a status of this key answers from now on; none where the
	// request was not taken, and until a late effect happens.
	Result execute.Effect `json:"result"`
	// Applied: the key changed the target. Two of one key are a double effect.
	Applied bool `json:"applied"`
	// Late without Applied: the request was accepted, and happens at Due. Late
	// with Applied: this is that effect, and Of the acceptance.
	Late bool `json:"late,omitempty"`
	// Conflict: the key came with another digest before; nothing was done.
	Conflict bool `json:"conflict,omitempty"`
	// Foreign: something else changed the target. It is no request and has no
	// key; Of is the effect that it takes back.
	Foreign bool `json:"foreign,omitempty"`
	// Partial: not all parameters took effect, whatever was answered.
	Partial bool `json:"partial,omitempty"`
	// Changed is what was written, where that is not Parameters: of a partial
	// effect and of a foreign change. null is a value that was taken away.
	Changed map[string]any `json:"changed,omitempty"`
	// Revert is what a foreign change will write at Due.
	Revert map[string]any `json:"revert,omitempty"`
	// Due is when what this record announces is to happen, Delay how long after
	// it, in nanoseconds.
	Due   time.Time     `json:"due,omitzero"`
	Delay time.Duration `json:"delay,omitempty"`
	// Of is the number of the record, from 1, that announced this one.
	Of int `json:"of,omitempty"`
}

// waits reports whether something is still to come of it.
func (r Record) waits() bool { return r.Late && !r.Applied || r.Revert != nil }

// changed is what the record writes to the target.
func (r Record) changed() map[string]any {
	switch {
	case r.Foreign, r.Applied && r.Partial:
		return r.Changed
	case r.Applied:
		return r.Parameters
	}
	return nil
}

// ReadJournal reads a journal file that another process may be writing: a last
// line without its end is not there yet.
func ReadJournal(path string) ([]Record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rs []Record
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			break
		}
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("journal %s line %d: %w", path, i+1, err)
		}
		rs = append(rs, r)
	}
	return rs, nil
}

type journal struct {
	mu      sync.Mutex
	records []Record
	file    *os.File
	// broken is the first error of a write. What is on the disk is not known
	// after it, so nothing is written behind it.
	broken error
}

func openJournal(path string) (*journal, error) {
	j := &journal{}
	if path == "" {
		return j, nil
	}
	rs, err := ReadJournal(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, r := range rs {
		whole(r.Parameters)
		whole(r.Changed)
		whole(r.Revert)
	}
	j.records = rs
	if j.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	if err := errors.Join(j.cutTornLine(), syncDir(filepath.Dir(path))); err != nil {
		return nil, errors.Join(err, j.file.Close())
	}
	return j, nil
}

// whole makes whole numbers what they are in a request: JSON alone reads them
// as floating point.
func whole(values map[string]any) {
	for name, v := range values {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			values[name] = int64(f)
		}
	}
}

// cutTornLine removes a last line without its end, which nobody was answered
// about, so that the next one does not grow onto it.
func (j *journal) cutTornLine() error {
	data, err := os.ReadFile(j.file.Name())
	if err != nil {
		return err
	}
	if err := j.file.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1)); err != nil {
		return err
	}
	return j.file.Sync()
}

// syncDir makes the name of a new file durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// add makes a record durable and returns its number, from 1.
func (j *journal) add(r Record) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.broken != nil {
		return 0, fmt.Errorf("journal: nothing is written after a failed write: %w", j.broken)
	}
	if j.file != nil {
		line, err := json.Marshal(r)
		if err != nil {
			return 0, err
		}
		_, err = j.file.Write(append(line, '\n'))
		if err == nil {
			err = j.file.Sync()
		}
		if err != nil {
			j.broken = err
			return 0, fmt.Errorf("journal: %w", err)
		}
	}
	j.records = append(j.records, r)
	return len(j.records), nil
}

func (j *journal) all() []Record {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.records)
}

func (j *journal) close() error {
	if j.file == nil {
		return nil
	}
	return j.file.Close()
}

// Verify is what a receiver does with X-Setpoint-Signature. It does not look
// at the age of t, which a real receiver should.
func Verify(secret []byte, header string, body []byte) bool {
	t, ok := strings.CutPrefix(header, "t=")
	if !ok {
		return false
	}
	t, _, _ = strings.Cut(t, ",")
	unix, err := strconv.ParseInt(t, 10, 64)
	if err != nil {
		return false
	}
	return hmac.Equal([]byte(header), []byte(execute.Sign(secret, time.Unix(unix, 0), body)))
}
