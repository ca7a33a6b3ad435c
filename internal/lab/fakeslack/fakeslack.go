// Package fakeslack is a Slack on loopback, as far as approvals need it: the part
// of the Web API that posts and changes messages, Socket Mode, and people who
// click, with the faults that the real one has.
package fakeslack

import "github.com/gorilla/websocket"

var upgrader = websocket.Upgrader{}
