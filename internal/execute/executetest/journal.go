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
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Record is one request that tried to act.
type Record struct {
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
	// Body is the bytes as they came.
	Body   string `json:"body"`
	Signed bool   `json:"signed"`
	DryRun bool   `json:"dryRun"`
	// Duplicate: the key was known and nothing was done again.
	Duplicate bool `json:"duplicate"`
	// Result is what a status of this key answers; none where the request was
	// not taken.
	Result execute.Effect `json:"result"`
	// Applied: the target changed. Two of one key are a double effect.
	Applied bool `json:"applied"`
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
	j.records = rs
	if j.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return nil, err
	}
	return j, j.cutTornLine()
}

// cutTornLine removes a last line without its end, which nobody was answered
// about, so that the next one does not grow onto it.
func (j *journal) cutTornLine() error {
	data, err := os.ReadFile(j.file.Name())
	if err != nil {
		return err
	}
	return j.file.Truncate(int64(bytes.LastIndexByte(data, '\n') + 1))
}

func (j *journal) add(r Record) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file != nil {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		if _, err := j.file.Write(append(line, '\n')); err != nil {
			return err
		}
		if err := j.file.Sync(); err != nil {
			return err
		}
	}
	j.records = append(j.records, r)
	return nil
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
