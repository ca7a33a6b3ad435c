package web

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"

	"github.com/setpoint-dev/setpoint/internal/approve"
	"github.com/setpoint-dev/setpoint/internal/ledger"
	"github.com/setpoint-dev/setpoint/internal/reconcile"
)

func notFound(format string, args ...any) error {
	return &Error{Status: http.StatusNotFound, Code: "not-found", Message: fmt.Sprintf(format, args...)}
}

// asError maps every error to one status and code. What is not known is the
// agent's own fault.
func asError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	var refusal *approve.Refusal
	if errors.As(err, &refusal) {
		status := http.StatusConflict
		if refusal.Code == approve.RefusedNotApprover {
			status = http.StatusForbidden
		}
		return &Error{Status: status, Code: refusal.Code, Message: refusal.Text}
	}
	switch {
	case errors.Is(err, reconcile.ErrNotFound):
		return &Error{Status: http.StatusNotFound, Code: "not-found", Message: err.Error()}
	case errors.Is(err, ledger.ErrExists), errors.Is(err, ledger.ErrLost), errors.Is(err, ledger.ErrNothing):
		return &Error{Status: http.StatusConflict, Code: "conflict", Message: err.Error()}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return &Error{Status: http.StatusServiceUnavailable, Code: "timeout", Message: err.Error()}
	}
	return &Error{Status: http.StatusInternalServerError, Code: "internal", Message: err.Error()}
}

// NewFreezeID is a short random name that people can type.
func NewFreezeID() string {
	var b [4]byte
	_, _ = rand.Read(b[:]) // It never fails.
	return "f" + hex.EncodeToString(b[:])
}

// Thaw records that a freeze is lifted. One that so far is only a file is
// recorded first, so that the chain shows that it was; one that neither the
// files nor the ledger have is refused, because it is a typing error.
func Thaw(ctx context.Context, desk *reconcile.Desk, v View, t ledger.Thaw) error {
	_, known := v.State.Freezes[t.ID]
	for _, f := range v.Files {
		if f.ID != t.ID {
			continue
		}
		known = true
		// ErrExists: recorded and lifted before, and only the file stayed.
		if err := desk.Freeze(ctx, f); err != nil && !errors.Is(err, ledger.ErrExists) {
			return err
		}
	}
	if !known {
		return notFound("no freeze %q; `setpoint get freezes` lists them", t.ID)
	}
	return desk.Thaw(ctx, t.ID, t.By, t.Reason)
}
