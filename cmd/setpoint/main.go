// Command setpoint keeps services inside their SLOs. It measures, and where an
// SLO is missed it may take at most one permitted step per window.
package main

import (
	"log"
	"os"
)

func main() {
	log.SetOutput(unquoted{os.Stderr})
	os.Exit(newApp().run(os.Args[1:]))
}
