module tagwire/interop/cases

go 1.26.0
