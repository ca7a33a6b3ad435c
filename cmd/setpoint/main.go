// Command setpoint keeps services inside their SLOs. It measures, and where an
// SLO is missed it may take at most one permitted step per window.
package main

import "os"

func main() { os.Exit(newApp().run(os.Args[1:])) }
