package webhook

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

func newBody(b []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(b)) }

// unsent is the receipt when not one byte of the request was written.
func (e *Executor) unsent(err error) execute.Receipt {
	return execute.Receipt{Effect: execute.Failed, At: e.now(), Detail: "not sent: " + execute.CleanText(err.Error(), execute.MaxDetail)}
}

// send does the one round trip over a connection that stands. It goes below
// http.Client, which follows redirects.
func (e *Executor) send(req *http.Request, conn net.Conn, late time.Duration) execute.Receipt {
	// Until the request has the connection, not one byte of it can have been
	// written. After that it may have been.
	var connected atomic.Bool
	ctx := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	resp, err := over(conn).RoundTrip(req.WithContext(ctx))
	if err != nil && !connected.Load() {
		return e.unsent(err)
	}
	if err != nil {
		return execute.Receipt{Effect: execute.InDoubt, At: e.now(), Detail: "no answer: " + execute.CleanText(err.Error(), execute.MaxDetail)}
	}
	defer func() { _ = resp.Body.Close() }()
	body, readErr := readAnswer(resp)
	r := execute.Receipt{
		Effect: classify(resp.StatusCode, body, readErr), At: e.now(),
		Detail: detail(resp.StatusCode, body, readErr),
	}
	if r.Effect == execute.Applied {
		r.AppliedAt = r.At
		if resp.StatusCode == http.StatusAccepted {
			r.AppliedAt = r.At.Add(late)
		}
	}
	return r
}

// errLong: there is more than MaxAnswer.
var errLong = errors.New("the answer is longer than 64 KiB")

// readAnswer reads the capped body. What was read is returned beside an error.
func readAnswer(resp *http.Response) ([]byte, error) {
	if resp.StatusCode == http.StatusSwitchingProtocols {
		// The body would be the bare connection, which no deadline ends.
		return nil, errors.New("the target switched protocols")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, execute.MaxAnswer+1))
	if err == nil && len(body) > execute.MaxAnswer {
		return body[:execute.MaxAnswer], errLong
	}
	return body, err
}

// classify is the contract's list of statuses. Where the status alone decides,
// a lost body changes nothing; where the body may contradict it, a lost body is
// in-doubt. 409 is "already done with that key": one key is sent once, so if
// the actuator has it, this effect reached it (a proxy in between may have
// doubled the request), and measurement judges it like any other.
func classify(status int, body []byte, lost error) execute.Effect {
	switch status {
	case http.StatusConflict:
		return execute.Applied
	case http.StatusTooManyRequests:
		return execute.NotNow
	case http.StatusRequestTimeout, http.StatusTooEarly:
		return execute.InDoubt
	case http.StatusServiceUnavailable:
		if said(body, lost) == execute.NotNow {
			return execute.NotNow
		}
		return execute.InDoubt
	}
	switch status / 100 {
	case 2:
		return said(body, lost)
	case 3, 4:
		return execute.Failed
	}
	return execute.InDoubt
}

// said is what the body says, as far as it came. One that is only too long is
// read to its limit; what breaks off for another reason said nothing for sure.
func said(body []byte, lost error) execute.Effect {
	if lost != nil && !errors.Is(lost, errLong) {
		return execute.InDoubt
	}
	return execute.ParseResult(body)
}

func detail(status int, body []byte, lost error) string {
	s := fmt.Sprintf("HTTP %d", status)
	if text := execute.CleanText(string(body), execute.MaxDetail); text != "" {
		s += ": " + text
	}
	if lost != nil {
		s += " (answer lost: " + execute.CleanText(lost.Error(), 120) + ")"
	}
	return s
}
