package setpoint.gate

auto contains "asked" if {
	http.send({"method": "get", "url": "http://127.0.0.1:1/"}).status_code == 200
}
