package replay

import (
	"context"

	"github.com/setpoint-dev/setpoint/internal/ledger"
)

// One judges one recorded decision again, as Run does every one. The place of the
// entry in its chain is not verified.
func One(ctx context.Context, src Source, o Options, e ledger.Entry) (Judged, error) {
	return newJudge(src, o).judge(ctx, e)
}
