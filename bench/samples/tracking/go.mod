module depot.example/tracking

go 1.24
