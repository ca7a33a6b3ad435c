package checker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/setpoint-dev/setpoint/internal/execute/executetest"
	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// ReadJournal reads an actuator's journal: JSON lines. A last line without its
// end is not there: nobody was answered about it. The result is never nil.
func ReadJournal(r io.Reader) ([]executetest.Record, error) {
	return lines[executetest.Record](r, func(executetest.Record) error { return nil })
}

// ReadAcks reads what a harness wrote down when an append was acknowledged:
// JSON lines {"seq":…,"hash":"…"}. A last line without its end is not there.
func ReadAcks(r io.Reader) ([]ledger.Position, error) {
	return lines[ledger.Position](r, func(p ledger.Position) error {
		if p.Seq == 0 || p.Hash == "" {
			return errors.New(`want {"seq":…,"hash":"…"}`)
		}
		return nil
	})
}

func lines[T any](r io.Reader, check func(T) error) ([]T, error) {
	in, out := bufio.NewReader(r), []T{}
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var v T
		if err = json.Unmarshal(line, &v); err == nil {
			err = check(v)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		out = append(out, v)
	}
}
