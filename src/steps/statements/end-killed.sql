UPDATE runs SET outcome = 'interrupted', summary = 'the process was killed' WHERE outcome = 'running'
