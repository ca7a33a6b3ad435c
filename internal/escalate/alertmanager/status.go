package alertmanager

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/go-openapi/runtime"
	"github.com/prometheus/alertmanager/api/v2/client/general"
	"github.com/prometheus/alertmanager/api/v2/models"

	"github.com/setpoint-dev/setpoint/internal/execute"
)

// Status is what an Alertmanager says of itself.
type Status struct {
	Version string
	// Cluster is ready, settling or disabled; Peers is 0 when it is disabled.
	Cluster string
	Peers   int
	// Up is since when it runs.
	Up time.Time
	// Silences is how many are active.
	Silences int
}

// Status asks who answers, and reads the silences, as every pass does. It sends
// no alert.
func (r *Receiver) Status(ctx context.Context) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	resp, err := r.api.General.GetStatus(general.NewGetStatusParamsWithContext(ctx).WithTimeout(r.timeout))
	if err != nil {
		return Status{}, fmt.Errorf("status of alertmanager %s: %w", r.name, brief(err))
	}
	out, ok := statusOf(resp.Payload)
	if !ok {
		return Status{}, fmt.Errorf("status of alertmanager %s: the answer is not that of Alertmanager's API v2", r.name)
	}
	silences, err := r.holding(ctx, func(models.Matchers) bool { return true })
	if err != nil {
		return out, errors.Join(ErrSilences, brief(err))
	}
	out.Silences = len(silences)
	return out, nil
}

// ErrSilences says that Alertmanager answers, and its silences cannot be read.
var ErrSilences = errors.New("the silences cannot be read")

// brief says what an answer was, without the words of the library, which quote
// Go types and a stranger's page.
func brief(err error) error {
	var other *runtime.APIError
	var net *url.Error
	text := readable(err).Error()
	switch {
	case errors.As(err, &other):
		return fmt.Errorf("HTTP %d", other.Code)
	case errors.As(err, &net), errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return errors.New(execute.CleanText(text, 200))
	case strings.Contains(text, "status 500"):
		return errors.New("HTTP 500")
	}
	return errors.New("the answer is not that of Alertmanager's API v2: another server, or a page to log in")
}

func statusOf(s *models.AlertmanagerStatus) (Status, bool) {
	if s == nil || s.VersionInfo == nil || s.Cluster == nil {
		return Status{}, false
	}
	return Status{
		Version: execute.CleanText(text(s.VersionInfo.Version), 60),
		Cluster: execute.CleanText(text(s.Cluster.Status), 20),
		Peers:   len(s.Cluster.Peers), Up: instant(s.Uptime),
	}, true
}
