package web

import (
	"slices"

	"github.com/setpoint-dev/setpoint/internal/measure"
)

// changedLately are the changes of a service that a proposer would be shown now:
// the newest of the last days, newest first.
func changedLately(v View, service string) []Change {
	items := Changes(v, Filter{Service: service, Since: v.Now.Add(-measure.ChangesKept)}).Items
	items = slices.DeleteFunc(items, func(c Change) bool { return c.Time.Sub(v.Now) > measure.ChangeAhead })
	return items[:min(len(items), measure.MaxChanges)]
}
