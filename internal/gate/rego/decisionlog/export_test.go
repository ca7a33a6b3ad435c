package decisionlog

// Writer is where lines go.
type Writer interface {
	Follow() error
	Write(line []byte) error
}

// Start is Open with another place to write to.
func Start(o Options, to Writer) (*Log, error) { return start(o, double{to}) }

// MaxWaiting is how many decisions may wait.
const MaxWaiting = maxWaiting

type double struct{ Writer }

func (d double) follow() error           { return d.Follow() }
func (d double) write(line []byte) error { return d.Write(line) }

// Masked gives what masks leave of input and result.
func Masked(input, result any, elements ...any) (Event, error) {
	e := Event{Input: input, Result: result}
	var all []mask
	for _, element := range elements {
		m, err := parseMask(element)
		if err != nil {
			return Event{}, err
		}
		all = append(all, m)
	}
	apply(&e, all)
	return e, nil
}
